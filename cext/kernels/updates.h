// What c[] and the state vectors of UpdateArgs mean to each optimizer rule of kernels.h. Documentation only.
//
// Before each rule g is multiplied by gscale; after it w is multiplied by (1 - wdecay) and g set to zero. The rules are
// DyNet's (the formulas under each name are those of its trainers). lr already holds every schedule.
//
//   sgd        c = {lr}                                  w -= lr g
//   momentum   c = {lr, mom}            s0 velocity      s0 = mom s0 - lr g;  w += s0
//   adagrad    c = {lr, eps}            s0 sum of g^2    s0 += g^2;  w -= lr g / sqrt(s0 + eps)
//   adadelta   c = {lr, eps, rho}       s0 mean of g^2, s1 mean of step^2 (lr is 1 in DyNet)
//              s0 = rho s0 + (1 - rho) g^2;  step = -g sqrt(s1 + eps) / sqrt(s0 + eps);
//              s1 = rho s1 + (1 - rho) step^2;  w += lr step
//   rmsprop    c = {lr, eps, rho}       s0 mean of g^2   s0 = rho s0 + (1 - rho) g^2;  w -= lr g / sqrt(s0 + eps)
//   adam       c = {lr, beta1, beta2, eps, 1 - beta1^t, 1 - beta2^t}, t = 1 at the first update;  s0 = m, s1 = v
//              m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//              w -= lr sqrt(c[5]) / c[4] * m / (sqrt(v) + eps)
//              AdamW: the same with wdecay = lr * lambda
//   amsgrad    as adam, with s2 = max(s2, v) in the place of v in the last line
//   eg         c = {lr, mom}            s0 velocity      exponentiated gradient: w is a distribution (positive, sum 1)
//              s0 = mom s0 - lr g;  w = softmax(log(w) + s0), over all n numbers: one call a parameter
// Who may include: nobody needs to; exec/ and the trainers read it. Includes: nothing.
#pragma once
