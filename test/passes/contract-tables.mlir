// RUN: heed-opt %s --attn-contract-tables | FileCheck %s
// RUN: heed-opt %s --attn-contract-tables --remarks-filter=attn-contract.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#q = affine_map<(i, j, e) -> (i, e)>
#k = affine_map<(i, j, e) -> (j, e)>
#s = affine_map<(i, j, e) -> (i, j)>

// Three rows for eight keys: 6 x 3 products, and what is left of the sum.
// CHECK-LABEL: func @few_rows
// CHECK-SAME: %[[Q:.*]]: tensor<6x4xf32>, %[[K:.*]]: tensor<8x4xf32>, %[[T:.*]]: tensor<3x4xf32>, %[[L:.*]]: tensor<6x8xi32>
// CHECK: %[[REST:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[K]]
// CHECK: %[[TABLE:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[T]] : {{.*}} outs({{.*}} : tensor<6x3xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[REST]], %[[L]]
// CHECK: tensor.extract %[[TABLE]]
// CHECK: arith.subf
// REMARK: Function=few_rows | Remark="multiplied once and looked up: 3 rows of a table instead of 8 keys"
func.func @few_rows(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %t: tensor<3x4xf32>, %label: tensor<6x8xi32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k, %label : tensor<6x4xf32>, tensor<8x4xf32>, tensor<6x8xi32>) outs(%z : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %l: i32, %sum: f32):
    %row = arith.index_cast %l : i32 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %t[%row, %d] : tensor<3x4xf32>
    %y = arith.subf %b, %x : f32
    %m = arith.mulf %a, %y : f32
    %r = arith.addf %sum, %m : f32
    linalg.yield %r : f32
  } -> tensor<6x8xf32>
  return %s : tensor<6x8xf32>
}

// More rows than keys.
// CHECK-LABEL: func @many_rows
// CHECK-NOT: tensor<6x30xf32>
// CHECK: return
// REMARK: Function=many_rows | Remark="multiplied pair by pair: it would be 30 rows of a table instead of 8 keys"
func.func @many_rows(%q: tensor<6x4xf32>, %t: tensor<30x4xf32>, %label: tensor<6x8xi32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %s = linalg.generic {indexing_maps = [#q, #s, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %label : tensor<6x4xf32>, tensor<6x8xi32>) outs(%z : tensor<6x8xf32>) {
  ^bb0(%a: f32, %l: i32, %sum: f32):
    %row = arith.index_cast %l : i32 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %t[%row, %d] : tensor<30x4xf32>
    %m = arith.mulf %a, %x : f32
    %r = arith.addf %sum, %m : f32
    linalg.yield %r : f32
  } -> tensor<6x8xf32>
  return %s : tensor<6x8xf32>
}

// A factor of the key alone keeps the sum over pairs: nothing to look up.
// CHECK-LABEL: func @of_keys
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @of_keys(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %t: tensor<3x4xf32>, %label: tensor<6x8xi32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s, #s], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k, %label : tensor<6x4xf32>, tensor<8x4xf32>, tensor<6x8xi32>) outs(%z : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %l: i32, %sum: f32):
    %row = arith.index_cast %l : i32 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %t[%row, %d] : tensor<3x4xf32>
    %y = arith.mulf %b, %x : f32
    %m = arith.mulf %a, %y : f32
    %r = arith.addf %sum, %m : f32
    linalg.yield %r : f32
  } -> tensor<6x8xf32>
  return %s : tensor<6x8xf32>
}
