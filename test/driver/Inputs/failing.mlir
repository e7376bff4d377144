// The host pipeline fails: no loop gives the index of the parameter's name its range.
module {
  func.func @bad(%x: tensor<?xf32> {attn.name = "x", attn.dims = ["N"]}, %n: i32 {attn.name = "n"}) -> (tensor<?xf32> {attn.name = "y", attn.dims = ["N"]}) attributes {attn.model} {
    %i = arith.index_cast %n : i32 to index
    %0 = attn.param "l.{0}.w" [%i] : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
