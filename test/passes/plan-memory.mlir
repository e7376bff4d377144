// RUN: heed-opt %s --attn-plan-memory --split-input-file | FileCheck %s
// RUN: heed-opt %s --attn-plan-memory --split-input-file --remarks-filter=attn-plan.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// a and c do not live at the same time: two slots serve three buffers, and c takes a's.
// CHECK-LABEL: func @chain
// CHECK-SAME: %[[N:.*]]: index
func.func @chain(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  // CHECK: %[[ARENA:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?xi8>
  // CHECK: %[[A:.*]] = memref.view %[[ARENA]][%[[O0:.*]]][%[[N]]] : memref<?xi8> to memref<?xf32>
  // CHECK: %[[B:.*]] = memref.view %[[ARENA]][%[[O1:.*]]][%[[N]]]
  // CHECK: %[[C:.*]] = memref.view %[[ARENA]][%[[O0]]][%[[N]]]
  // CHECK-NOT: memref.alloc
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  memref.copy %a, %b : memref<?xf32> to memref<?xf32>
  %c = memref.alloc(%n) : memref<?xf32>
  memref.copy %b, %c : memref<?xf32> to memref<?xf32>
  memref.copy %c, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

// Different sizes in one slot: the slot has the larger, known when the function is entered.
// CHECK-LABEL: func @larger
// CHECK: arith.maxui
// CHECK: memref.alloc({{.*}}memref<?xi8>
func.func @larger(%n: index, %m: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  memref.copy %a, %y : memref<?xf32> to memref<?xf32>
  %b = memref.alloc(%m) : memref<?xf32>
  memref.copy %x, %b : memref<?xf32> to memref<?xf32>
  memref.copy %b, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

// A buffer from outside a loop lives as long as the loop; the one inside must not share its slot.
// CHECK-LABEL: func @loop
// CHECK: %[[ARENA:.*]] = memref.alloc
// CHECK: memref.view %[[ARENA]][%[[O0:.*]]][]
// CHECK: scf.for
// CHECK-NOT: memref.view %[[ARENA]][%[[O0]]][]
// CHECK: memref.view %[[ARENA]]
func.func @loop(%n: index, %x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  scf.for %l = %c0 to %n step %c1 {
    memref.copy %a, %y : memref<8xf32> to memref<8xf32>
    %b = memref.alloc() : memref<8xf32>
    memref.copy %x, %b : memref<8xf32> to memref<8xf32>
    memref.copy %b, %y : memref<8xf32> to memref<8xf32>
  }
  return
}

// -----

// Left alone: a result outlives the call.
// CHECK-LABEL: func @escapes
// REMARK: [Missed] escapes {{.*}}Function=escapes | Remark="the buffer leaves the function or the loop's iteration that makes it"
// CHECK-COUNT-2: memref.alloc() : memref<8xf32>
// CHECK-NOT: memref.view
func.func @escapes(%x: memref<8xf32>) -> (memref<8xf32>, memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  memref.copy %x, %b : memref<8xf32> to memref<8xf32>
  return %a, %b : memref<8xf32>, memref<8xf32>
}

// -----

// A branch's buffer takes room only where the branch is taken: N elements or N * N, never the larger of both. Both
// branches' first buffers share a slot.
// CHECK-LABEL: func @branches
// CHECK-SAME: %[[N:[a-z0-9]*]]: index, %[[C:[a-z0-9]*]]: i1
// CHECK: %[[S0:.*]] = arith.select %[[C]], %{{.*}}, %[[ZERO:.*]] : index
// CHECK: %[[S1:.*]] = arith.select %[[C]], %[[ZERO2:.*]], %{{.*}} : index
// CHECK: arith.maxui %[[S0]], %[[S1]]
// CHECK: %[[ARENA:.*]] = memref.alloc
// CHECK: scf.if
// CHECK: memref.view %[[ARENA]][%[[O:.*]]][%[[N]]]
// CHECK: else
// CHECK: memref.view %[[ARENA]][%[[O]]][%[[N]], %[[N]]]
func.func @branches(%n: index, %c: i1, %x: memref<?xf32>, %y: memref<?x?xf32>) {
  scf.if %c {
    %a = memref.alloc(%n) : memref<?xf32>
    memref.copy %x, %a : memref<?xf32> to memref<?xf32>
    memref.copy %a, %x : memref<?xf32> to memref<?xf32>
  } else {
    %a = memref.alloc(%n, %n) : memref<?x?xf32>
    memref.copy %y, %a : memref<?x?xf32> to memref<?x?xf32>
    memref.copy %a, %y : memref<?x?xf32> to memref<?x?xf32>
  }
  return
}

// -----

// One is larger than the other in every call: no maximum is computed when it runs.
// CHECK-LABEL: func @comparable
// CHECK-NOT: arith.maxui
// CHECK: memref.view
// CHECK: memref.view
func.func @comparable(%n: index, %x: memref<?xf32>, %y: memref<?x4xf32>) {
  %c1 = arith.constant 1 : index
  %m = arith.addi %n, %c1 : index
  %a = memref.alloc(%m) : memref<?x4xf32>
  memref.copy %y, %a : memref<?x4xf32> to memref<?x4xf32>
  memref.copy %a, %y : memref<?x4xf32> to memref<?x4xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %b : memref<?xf32> to memref<?xf32>
  memref.copy %b, %x : memref<?xf32> to memref<?xf32>
  return
}

// -----

// Of two sizes that nothing compares, the larger one is found when it runs.
// CHECK-LABEL: func @free
// CHECK: arith.maxui
func.func @free(%x: memref<?xf32> {attn.dims = ["N"]}, %y: memref<?xf32> {attn.dims = ["M"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  memref.copy %a, %x : memref<?xf32> to memref<?xf32>
  %b = memref.alloc(%m) : memref<?xf32>
  memref.copy %y, %b : memref<?xf32> to memref<?xf32>
  memref.copy %b, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

// The same two, where a call with M > N has failed before: N is enough.
// CHECK-LABEL: func @required
// CHECK-NOT: arith.maxui
// CHECK: memref.view
// CHECK: memref.view
func.func @required(%x: memref<?xf32> {attn.dims = ["N"]}, %y: memref<?xf32> {attn.dims = ["M"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  %fits = arith.cmpi sle, %m, %n : index
  attn.require %fits, "M = {0}, expected at most N = {1}" (%m, %n) : index, index
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  memref.copy %a, %x : memref<?xf32> to memref<?xf32>
  %b = memref.alloc(%m) : memref<?xf32>
  memref.copy %y, %b : memref<?xf32> to memref<?xf32>
  memref.copy %b, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

// Two products with one value: a slot of that size serves both.
// CHECK-LABEL: func @equal
// CHECK-NOT: arith.maxui
// CHECK: memref.view
// CHECK: memref.view
func.func @equal(%x: memref<?xf32> {attn.dims = ["D"]}, %y: memref<?x?xf32> {attn.dims = ["H", "E"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %x, %c0 : memref<?xf32>
  %h = memref.dim %y, %c0 : memref<?x?xf32>
  %e = memref.dim %y, %c1 : memref<?x?xf32>
  %he = arith.muli %h, %e : index
  %fits = arith.cmpi eq, %d, %he : index
  attn.require %fits, "D = {0}, expected H*E = {1}" (%d, %he) : index, index
  %a = memref.alloc(%d) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  memref.copy %a, %x : memref<?xf32> to memref<?xf32>
  %b = memref.alloc(%h, %e) : memref<?x?xf32>
  memref.copy %y, %b : memref<?x?xf32> to memref<?x?xf32>
  memref.copy %b, %y : memref<?x?xf32> to memref<?x?xf32>
  return
}

// -----

// A requirement that a call meets behind the mathematics (or not at all) says nothing of the memory before it.
// CHECK-LABEL: func @later
// CHECK: arith.maxui
func.func @later(%x: memref<?xf32> {attn.dims = ["N"]}, %y: memref<?xf32> {attn.dims = ["M"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %a : memref<?xf32> to memref<?xf32>
  memref.copy %a, %x : memref<?xf32> to memref<?xf32>
  %b = memref.alloc(%m) : memref<?xf32>
  memref.copy %y, %b : memref<?xf32> to memref<?xf32>
  memref.copy %b, %y : memref<?xf32> to memref<?xf32>
  %fits = arith.cmpi sle, %m, %n : index
  attn.require %fits, "M = {0}, expected at most N = {1}" (%m, %n) : index, index
  return
}

// -----

// What is said of it: the arena, and what of it is in use at once, in the model's dims. A slot for two sizes holds the larger.
// REMARK: Function=said | Remark="3 buffers in 2 slots of one arena: 4*B*N + 32 bytes; in use at once all of them"
func.func @said(%x: memref<?x?xf32> {attn.dims = ["B", "N"]}, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %B = memref.dim %x, %c0 : memref<?x?xf32>
  %N = memref.dim %x, %c1 : memref<?x?xf32>
  %a = memref.alloc(%B, %N) : memref<?x?xf32>
  memref.copy %x, %a : memref<?x?xf32> to memref<?x?xf32>
  %b = memref.alloc() : memref<8xf32>
  memref.copy %y, %b : memref<8xf32> to memref<8xf32>
  memref.copy %a, %x : memref<?x?xf32> to memref<?x?xf32>
  %c = memref.alloc(%N) : memref<?xf32>
  %v = memref.subview %c[0] [8] [1] : memref<?xf32> to memref<8xf32, strided<[1]>>
  memref.copy %b, %v : memref<8xf32> to memref<8xf32, strided<[1]>>
  memref.copy %v, %y : memref<8xf32, strided<[1]>> to memref<8xf32>
  return
}

// -----

// What both branches hand on is in use behind them; the two exclude each other, so they share a slot.
// CHECK-LABEL: func @handed_on
// CHECK-SAME: %[[N:[^:]*]]: index
// CHECK: %[[ARENA:.*]] = memref.alloc
// CHECK: scf.if
// CHECK: memref.view %[[ARENA]][%[[O:.*]]][%[[N]]]
// CHECK: else
// CHECK: memref.view %[[ARENA]][%[[O]]][%{{.*}}]
// CHECK: memref.view %[[ARENA]][%[[O2:.*]]][%[[N]]]
// CHECK-NOT: memref.view %[[ARENA]][%[[O]]]
func.func @handed_on(%n: index, %c: i1, %x: memref<?xf32>) {
  %r = scf.if %c -> memref<?xf32> {
    %a = memref.alloc(%n) : memref<?xf32>
    memref.copy %x, %a : memref<?xf32> to memref<?xf32>
    scf.yield %a : memref<?xf32>
  } else {
    // A size that is computed in the branch.
    %c1 = arith.constant 1 : index
    %some = arith.maxui %n, %c1 : index
    %a = memref.alloc(%some) : memref<?xf32>
    memref.copy %a, %a : memref<?xf32> to memref<?xf32>
    scf.yield %a : memref<?xf32>
  }
  %b = memref.alloc(%n) : memref<?xf32>
  memref.copy %x, %b : memref<?xf32> to memref<?xf32>
  memref.copy %r, %x : memref<?xf32> to memref<?xf32>
  memref.copy %b, %x : memref<?xf32> to memref<?xf32>
  return
}
