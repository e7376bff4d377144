// RUN: heed-opt %s -attn-form-entries | not heed-opt -attn-form-entries 2>&1 | FileCheck %s

// CHECK: <stdin>:{{[0-9:]+}} error: the model is an entry already: 'copy.shapes' stands beside it
func.func @copy(%x: tensor<?xf32> {attn.name = "x"}) -> (tensor<?xf32> {attn.name = "y"}) attributes {attn.model} {
  return %x : tensor<?xf32>
}
