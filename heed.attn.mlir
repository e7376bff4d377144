#map = affine_map<()[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17] -> ((((s0 * s1) * s2) * s5) * 4)>
#map1 = affine_map<()[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17] -> ((((s0 * s1) * s2) * s3) * 8 + ((((s0 * s1) * s2) * s3) * s4) * 2 + ((((s0 * s1) * s2) * s3) * s5) * 2)>
#map2 = affine_map<()[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17] -> ((((s0 * s1) * s2) * s4) * 4, (((s6 * s7) * s8) * s9) * 4)>
#map3 = affine_map<()[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17] -> ((((s0 * s1) * s3) * s4) * 4, (((s10 * s11) * s12) * s13) * 4)>
#map4 = affine_map<()[s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17] -> ((((s0 * s1) * s3) * s5) * 4, (((s14 * s15) * s16) * s17) * 4)>
module attributes {attn.source = "causal-attention.heed", halide.target = {cores = 2 : i64, features = ["sse2"], gpu = "cuda", halide = "x86-64-linux-cuda-cuda_capability_80", l1 = 32768 : i64, l2 = 1048576 : i64, l3 = 33554432 : i64, multiprocessors = 108 : i64, name = "cuda", shared = 49152 : i64, thread_registers = 128 : i64, triple = "x86_64-unknown-linux-gnu", vector_bits = 128 : i64, vector_registers = 16 : i64, warp = 32 : i64}} {
  func.func @attention(%arg0: tensor<?x?x?x?xf32> {attn.dims = ["B", "H", "N", "E"], attn.name = "q"}, %arg1: tensor<?x?x?x?xf32> {attn.dims = ["B", "G", "M", "E"], attn.name = "k"}, %arg2: tensor<?x?x?x?xf32> {attn.dims = ["B", "G", "M", "F"], attn.name = "v"}) -> (tensor<?x?x?x?xf32> {attn.dims = ["B", "H", "N", "F"], attn.name = "o"}) attributes {attn.model} {
    %c3 = arith.constant 3 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %dim = tensor.dim %arg0, %c0 : tensor<?x?x?x?xf32>
    %dim_0 = tensor.dim %arg0, %c1 : tensor<?x?x?x?xf32>
    %dim_1 = tensor.dim %arg0, %c2 : tensor<?x?x?x?xf32>
    %dim_2 = tensor.dim %arg0, %c3 : tensor<?x?x?x?xf32>
    %dim_3 = tensor.dim %arg1, %c0 : tensor<?x?x?x?xf32>
    %dim_4 = tensor.dim %arg1, %c1 : tensor<?x?x?x?xf32>
    %dim_5 = tensor.dim %arg1, %c2 : tensor<?x?x?x?xf32>
    %dim_6 = tensor.dim %arg1, %c3 : tensor<?x?x?x?xf32>
    %dim_7 = tensor.dim %arg2, %c0 : tensor<?x?x?x?xf32>
    %dim_8 = tensor.dim %arg2, %c1 : tensor<?x?x?x?xf32>
    %dim_9 = tensor.dim %arg2, %c2 : tensor<?x?x?x?xf32>
    %dim_10 = tensor.dim %arg2, %c3 : tensor<?x?x?x?xf32>
    %0 = arith.cmpi eq, %dim_3, %dim : index
    attn.require %0, "extent of 'k' (axis 0) is {0}, expected B = {1}"(%dim_3, %dim) : index, index
    %1 = arith.cmpi eq, %dim_6, %dim_2 : index
    attn.require %1, "extent of 'k' (axis 3) is {0}, expected E = {1}"(%dim_6, %dim_2) : index, index
    %2 = arith.cmpi eq, %dim_7, %dim : index
    attn.require %2, "extent of 'v' (axis 0) is {0}, expected B = {1}"(%dim_7, %dim) : index, index
    %3 = arith.cmpi eq, %dim_8, %dim_4 : index
    attn.require %3, "extent of 'v' (axis 1) is {0}, expected G = {1}"(%dim_8, %dim_4) : index, index
    %4 = arith.cmpi eq, %dim_9, %dim_5 : index
    attn.require %4, "extent of 'v' (axis 2) is {0}, expected M = {1}"(%dim_9, %dim_5) : index, index
    %5 = arith.muli %dim_0, %dim_4 : index
    %6 = arith.subi %5, %dim_4 : index
    %7 = arith.maxsi %dim_0, %c1 : index
    %8 = arith.floordivsi %6, %7 : index
    %9 = arith.cmpi slt, %8, %dim_4 : index
    %10 = arith.cmpi eq, %dim, %c0 : index
    %11 = arith.ori %9, %10 : i1
    %12 = arith.cmpi eq, %dim_0, %c0 : index
    %13 = arith.ori %11, %12 : i1
    %14 = arith.cmpi eq, %dim_1, %c0 : index
    %15 = arith.ori %13, %14 : i1
    %16 = arith.cmpi eq, %dim_5, %c0 : index
    %17 = arith.ori %15, %16 : i1
    %18 = arith.cmpi eq, %dim_2, %c0 : index
    %19 = arith.ori %17, %18 : i1
    attn.require %19, "the index of 'k' (axis 1) runs from {0} to {1}, its extent is G = {2}"(%c0, %8, %dim_4) : index, index, index
    %20 = arith.subi %dim_5, %dim_1 : index
    %21 = arith.cmpi eq, %dim_10, %c0 : index
    %22 = arith.ori %15, %21 : i1
    %23 = arith.ori %22, %16 : i1
    attn.require %23, "the index of 'v' (axis 1) runs from {0} to {1}, its extent is G = {2}"(%c0, %8, %dim_4) : index, index, index
    %24 = arith.index_cast %dim_2 : index to i64
    %25 = arith.sitofp %24 : i64 to f64
    %26 = math.sqrt %25 : f64
    %27 = arith.truncf %26 : f64 to f32
    %cst = arith.constant 1.000000e+00 : f32
    %28 = arith.select %18, %cst, %27 : f32
    %29 = arith.divf %cst, %28 : f32
    %30 = tensor.empty(%dim, %dim_0, %dim_1, %dim_10) : tensor<?x?x?x?xf32>
    %31 = halide.call @attention_attention(%dim, %dim_0, %dim_1, %dim_5, %dim_2, %dim_10, %dim_4, %arg0, %arg1, %arg2, %29, %20 : index, index, index, index, index, index, index, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, tensor<?x?x?x?xf32>, f32, index) outs(%30 : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
    return %31 : tensor<?x?x?x?xf32>
  }
  halide.pipeline @attention_attention attributes {attn.cost = {axes = array<i64: -1, -1, -1, -1, -1, -1, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3>, bytes = #map, flops = #map1, gathered = [#map2, #map3, #map4], names = ["a0", "a1", "a2", "a3", "a4", "a5", "a7", "a7", "a7", "a7", "a8", "a8", "a8", "a8", "a9", "a9", "a9", "a9"]}, attn.largest = 1073741823 : i64} {
    %a0 = halide.param "a0" : i32
    %a1 = halide.param "a1" : i32
    %a2 = halide.param "a2" : i32
    %a3 = halide.param "a3" : i32
    %a4 = halide.param "a4" : i32
    %a5 = halide.param "a5" : i32
    %a6 = halide.param "a6" : i32
    %a7 = halide.buffer "a7" ("d0", "d1", "d2", "d3") : f32
    %c0_i32 = arith.constant 0 : i32
    halide.set_bounds %a7, 3 from %c0_i32
    %0 = halide.extent %a7, 3 : i32
    halide.set_bounds %a7, 2 from %c0_i32
    %1 = halide.extent %a7, 2 : i32
    halide.set_bounds %a7, 1 from %c0_i32
    %2 = halide.extent %a7, 1 : i32
    halide.set_bounds %a7, 0 from %c0_i32
    %3 = halide.extent %a7, 0 : i32
    %a8 = halide.buffer "a8" ("d0", "d1", "d2", "d3") : f32
    halide.set_bounds %a8, 3 from %c0_i32
    %4 = halide.extent %a8, 3 : i32
    halide.set_bounds %a8, 2 from %c0_i32
    %5 = halide.extent %a8, 2 : i32
    halide.set_bounds %a8, 1 from %c0_i32
    %6 = halide.extent %a8, 1 : i32
    halide.set_bounds %a8, 0 from %c0_i32
    %7 = halide.extent %a8, 0 : i32
    %a9 = halide.buffer "a9" ("d0", "d1", "d2", "d3") : f32
    halide.set_bounds %a9, 3 from %c0_i32
    %8 = halide.extent %a9, 3 : i32
    halide.set_bounds %a9, 2 from %c0_i32
    %9 = halide.extent %a9, 2 : i32
    halide.set_bounds %a9, 1 from %c0_i32
    %10 = halide.extent %a9, 1 : i32
    halide.set_bounds %a9, 0 from %c0_i32
    %11 = halide.extent %a9, 0 : i32
    %a10 = halide.param "a10" : f32
    %a11 = halide.param "a11" : i32
    %f0 = halide.func "f0" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : i1 {
      %12 = arith.addi %d2, %a11 : i32
      %13 = arith.cmpi sle, %d3, %12 : i32
      halide.yield %13 : i1
    }
    %cst = arith.constant 0.000000e+00 : f32
    %sum1 = halide.func "sum1" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : f32 {
      halide.yield %cst : f32
    }
    halide.update %sum1 over ("r0" from %c0_i32 extent %a4) set (%d3, %d2, %d1, %d0, %r0) {
      %12 = halide.read %sum1[%d3, %d2, %d1, %d0] : f32
      %13 = halide.read %f0[%d3, %d2, %d1, %d0] : i1
      %c1_i32 = arith.constant 1 : i32
      %14 = arith.subi %0, %c1_i32 : i32
      %15 = arith.minsi %d0, %14 : i32
      %16 = arith.maxsi %15, %c0_i32 : i32
      %17 = arith.subi %1, %c1_i32 : i32
      %18 = arith.minsi %d1, %17 : i32
      %19 = arith.maxsi %18, %c0_i32 : i32
      %20 = arith.subi %2, %c1_i32 : i32
      %21 = arith.minsi %d2, %20 : i32
      %22 = arith.maxsi %21, %c0_i32 : i32
      %23 = arith.subi %3, %c1_i32 : i32
      %24 = arith.minsi %r0, %23 : i32
      %25 = arith.maxsi %24, %c0_i32 : i32
      %26 = halide.read %a7[%25, %22, %19, %16] : f32
      %27 = arith.extsi %d1 : i32 to i64
      %28 = arith.extsi %a6 : i32 to i64
      %29 = arith.muli %27, %28 : i64
      %30 = arith.extsi %a1 : i32 to i64
      %31 = arith.floordivsi %29, %30 : i64
      %32 = arith.subi %4, %c1_i32 : i32
      %33 = arith.minsi %d0, %32 : i32
      %34 = arith.maxsi %33, %c0_i32 : i32
      %35 = arith.subi %5, %c1_i32 : i32
      %36 = arith.extsi %35 : i32 to i64
      %37 = arith.minsi %31, %36 : i64
      %38 = arith.extsi %c0_i32 : i32 to i64
      %39 = arith.maxsi %37, %38 : i64
      %40 = arith.trunci %39 : i64 to i32
      %41 = arith.subi %6, %c1_i32 : i32
      %42 = arith.minsi %d3, %41 : i32
      %43 = arith.maxsi %42, %c0_i32 : i32
      %44 = arith.subi %7, %c1_i32 : i32
      %45 = arith.minsi %r0, %44 : i32
      %46 = arith.maxsi %45, %c0_i32 : i32
      %47 = halide.read %a8[%46, %43, %40, %34] : f32
      %48 = arith.mulf %26, %47 : f32
      %49 = arith.addf %12, %48 : f32
      %50 = arith.select %13, %49, %12 : f32
      halide.yield %50 : f32
    }
    %f2 = halide.func "f2" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : f32 {
      %12 = halide.read %f0[%d3, %d2, %d1, %d0] : i1
      %13 = halide.read %sum1[%d3, %d2, %d1, %d0] : f32
      %cst_1 = arith.constant 0xFF800000 : f32
      %14 = arith.mulf %13, %a10 : f32
      %15 = arith.select %12, %14, %cst_1 : f32
      halide.yield %15 : f32
    }
    %f3 = halide.func "f3" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : i1 {
      %12 = halide.read %f0[%d3, %d2, %d1, %d0] : i1
      %13 = halide.read %f2[%d3, %d2, %d1, %d0] : f32
      %cst_1 = arith.constant 0xFF800000 : f32
      %14 = arith.cmpf oeq, %13, %cst_1 : f32
      %true = arith.constant true
      %15 = arith.xori %14, %true : i1
      %16 = arith.andi %12, %15 : i1
      halide.yield %16 : i1
    }
    %cst_0 = arith.constant 0xFF800000 : f32
    %sum4 = halide.func "sum4" (%d2 = "d2", %d1 = "d1", %d0 = "d0") : f32 {
      halide.yield %cst_0 : f32
    }
    halide.update %sum4 over ("r0" from %c0_i32 extent %a3) set (%d2, %d1, %d0, %r0) {
      %12 = halide.read %sum4[%d2, %d1, %d0] : f32
      %13 = halide.read %f2[%r0, %d2, %d1, %d0] : f32
      %14 = halide.read %f3[%r0, %d2, %d1, %d0] : i1
      %15 = arith.select %14, %13, %cst_0 : f32
      %16 = arith.maximumf %12, %15 : f32
      halide.yield %16 : f32
    }
    %f5 = halide.func "f5" (%d2 = "d2", %d1 = "d1", %d0 = "d0") : i1 {
      %12 = halide.read %sum4[%d2, %d1, %d0] : f32
      %13 = arith.cmpf oeq, %12, %cst_0 : f32
      halide.yield %13 : i1
    }
    %sum6 = halide.func "sum6" (%d2 = "d2", %d1 = "d1", %d0 = "d0") : f32 {
      halide.yield %cst : f32
    }
    halide.update %sum6 over ("r0" from %c0_i32 extent %a3) set (%d2, %d1, %d0, %r0) {
      %12 = halide.read %sum6[%d2, %d1, %d0] : f32
      %13 = halide.read %f2[%r0, %d2, %d1, %d0] : f32
      %14 = halide.read %f3[%r0, %d2, %d1, %d0] : i1
      %15 = halide.read %f5[%d2, %d1, %d0] : i1
      %16 = halide.read %sum4[%d2, %d1, %d0] : f32
      %17 = arith.subf %13, %16 : f32
      %18 = math.exp %17 : f32
      %true = arith.constant true
      %19 = arith.xori %15, %true : i1
      %20 = arith.andi %14, %19 : i1
      %21 = arith.select %20, %18, %cst : f32
      %22 = arith.addf %12, %21 fastmath<reassoc,contract> : f32
      halide.yield %22 : f32
    }
    %f7 = halide.func "f7" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : f32, i1 {
      %12 = halide.read %f2[%d3, %d2, %d1, %d0] : f32
      %13 = halide.read %f3[%d3, %d2, %d1, %d0] : i1
      %14 = halide.read %f5[%d2, %d1, %d0] : i1
      %15 = halide.read %sum4[%d2, %d1, %d0] : f32
      %16 = halide.read %sum6[%d2, %d1, %d0] : f32
      %true = arith.constant true
      %17 = arith.xori %14, %true : i1
      %18 = arith.andi %13, %17 : i1
      %19 = arith.subf %12, %15 : f32
      %20 = math.exp %19 : f32
      %21 = arith.divf %20, %16 : f32
      %22 = arith.select %18, %21, %cst : f32
      halide.yield %22, %18 : f32, i1
    }
    %sum8 = halide.func "sum8" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : f32 {
      halide.yield %cst : f32
    }
    halide.update %sum8 over ("r0" from %c0_i32 extent %a3) set (%d3, %d2, %d1, %d0, %r0) {
      %12 = halide.read %sum8[%d3, %d2, %d1, %d0] : f32
      %13:2 = halide.read %f7[%r0, %d2, %d1, %d0] : f32, i1
      %14 = arith.extsi %d1 : i32 to i64
      %15 = arith.extsi %a6 : i32 to i64
      %16 = arith.muli %14, %15 : i64
      %17 = arith.extsi %a1 : i32 to i64
      %18 = arith.floordivsi %16, %17 : i64
      %c1_i32 = arith.constant 1 : i32
      %19 = arith.subi %8, %c1_i32 : i32
      %20 = arith.minsi %d0, %19 : i32
      %21 = arith.maxsi %20, %c0_i32 : i32
      %22 = arith.subi %9, %c1_i32 : i32
      %23 = arith.extsi %22 : i32 to i64
      %24 = arith.minsi %18, %23 : i64
      %25 = arith.extsi %c0_i32 : i32 to i64
      %26 = arith.maxsi %24, %25 : i64
      %27 = arith.trunci %26 : i64 to i32
      %28 = arith.subi %10, %c1_i32 : i32
      %29 = arith.minsi %r0, %28 : i32
      %30 = arith.maxsi %29, %c0_i32 : i32
      %31 = arith.subi %11, %c1_i32 : i32
      %32 = arith.minsi %d3, %31 : i32
      %33 = arith.maxsi %32, %c0_i32 : i32
      %34 = halide.read %a9[%33, %30, %27, %21] : f32
      %35 = arith.mulf %13#0, %34 : f32
      %36 = arith.addf %12, %35 : f32
      %37 = arith.select %13#1, %36, %12 : f32
      halide.yield %37 : f32
    }
    %sum8_out = halide.func "sum8_out" (%d3 = "d3", %d2 = "d2", %d1 = "d1", %d0 = "d0") : f32 {
      %12 = halide.read %sum8[%d3, %d2, %d1, %d0] : f32
      halide.yield %12 : f32
    }
    halide.output %sum8_out
    halide.set_bounds %sum8_out, 3 from %c0_i32
    halide.set_bounds %sum8_out, 2 from %c0_i32
    halide.set_bounds %sum8_out, 1 from %c0_i32
    halide.set_bounds %sum8_out, 0 from %c0_i32
    halide.compute_root %sum1
    halide.split %sum1, "d3" into ("d3", "d3t") by 32 tail GuardWithIf
    halide.split %sum1, "d2" into ("d2", "d2t") by 4 tail GuardWithIf
    halide.reorder %sum1, ("d3t", "d2t", "d1", "d0", "d3", "d2")
    halide.fuse %sum1, ("d1", "d0") into "d1_d0"
    halide.gpu_blocks %sum1, ("d1_d0", "d3", "d2")
    halide.gpu_threads %sum1, ("d3t", "d2t")
    halide.split %sum1 stage 1, "d3" into ("d3", "d3t") by 32 tail GuardWithIf
    halide.split %sum1 stage 1, "d2" into ("d2", "d2t") by 4 tail GuardWithIf
    halide.reorder %sum1 stage 1, ("r0", "d3t", "d2t", "d1", "d0", "d3", "d2")
    halide.fuse %sum1 stage 1, ("d1", "d0") into "d1_d0"
    halide.gpu_blocks %sum1 stage 1, ("d1_d0", "d3", "d2")
    halide.gpu_threads %sum1 stage 1, ("d3t", "d2t")
    halide.compute_root %sum4
    halide.split %sum4, "d2" into ("d2", "d2t") by 32 tail GuardWithIf
    halide.split %sum4, "d1" into ("d1", "d1t") by 4 tail GuardWithIf
    halide.reorder %sum4, ("d2t", "d1t", "d0", "d2", "d1")
    halide.gpu_blocks %sum4, ("d0", "d2", "d1")
    halide.gpu_threads %sum4, ("d2t", "d1t")
    halide.split %sum4 stage 1, "d2" into ("d2", "d2t") by 32 tail GuardWithIf
    halide.split %sum4 stage 1, "d1" into ("d1", "d1t") by 4 tail GuardWithIf
    halide.reorder %sum4 stage 1, ("r0", "d2t", "d1t", "d0", "d2", "d1")
    halide.gpu_blocks %sum4 stage 1, ("d0", "d2", "d1")
    halide.gpu_threads %sum4 stage 1, ("d2t", "d1t")
    halide.compute_root %sum6
    halide.split %sum6, "d2" into ("d2", "d2t") by 32 tail GuardWithIf
    halide.split %sum6, "d1" into ("d1", "d1t") by 4 tail GuardWithIf
    halide.reorder %sum6, ("d2t", "d1t", "d0", "d2", "d1")
    halide.gpu_blocks %sum6, ("d0", "d2", "d1")
    halide.gpu_threads %sum6, ("d2t", "d1t")
    halide.split %sum6 stage 1, "d2" into ("d2", "d2t") by 32 tail GuardWithIf
    halide.split %sum6 stage 1, "d1" into ("d1", "d1t") by 4 tail GuardWithIf
    halide.reorder %sum6 stage 1, ("r0", "d2t", "d1t", "d0", "d2", "d1")
    halide.gpu_blocks %sum6 stage 1, ("d0", "d2", "d1")
    halide.gpu_threads %sum6 stage 1, ("d2t", "d1t")
    halide.compute_root %sum8
    halide.split %sum8, "d3" into ("d3", "d3t") by 32 tail GuardWithIf
    halide.split %sum8, "d2" into ("d2", "d2t") by 4 tail GuardWithIf
    halide.reorder %sum8, ("d3t", "d2t", "d1", "d0", "d3", "d2")
    halide.fuse %sum8, ("d1", "d0") into "d1_d0"
    halide.gpu_blocks %sum8, ("d1_d0", "d3", "d2")
    halide.gpu_threads %sum8, ("d3t", "d2t")
    halide.split %sum8 stage 1, "d3" into ("d3", "d3t") by 32 tail GuardWithIf
    halide.split %sum8 stage 1, "d2" into ("d2", "d2t") by 4 tail GuardWithIf
    halide.reorder %sum8 stage 1, ("r0", "d3t", "d2t", "d1", "d0", "d3", "d2")
    halide.fuse %sum8 stage 1, ("d1", "d0") into "d1_d0"
    halide.gpu_blocks %sum8 stage 1, ("d1_d0", "d3", "d2")
    halide.gpu_threads %sum8 stage 1, ("d3t", "d2t")
    halide.split %sum8_out, "d3" into ("d3", "d3t") by 32 tail GuardWithIf
    halide.split %sum8_out, "d2" into ("d2", "d2t") by 4 tail GuardWithIf
    halide.reorder %sum8_out, ("d3t", "d2t", "d1", "d0", "d3", "d2")
    halide.fuse %sum8_out, ("d1", "d0") into "d1_d0"
    halide.gpu_blocks %sum8_out, ("d1_d0", "d3", "d2")
    halide.gpu_threads %sum8_out, ("d3t", "d2t")
  }
}

