"""Writes transport_oracle.json: transport plans from solvers that share nothing with this library.

    python3 transport_oracle.py > transport_oracle.json        (numpy, scipy, POT 0.9)

Three sources:
  sinkhorn    ot.sinkhorn and ot.unbalanced.sinkhorn_unbalanced (reg_type='kl', so the same reference measure)
  kkt         any pair of policies on small problems: Newton on the optimality conditions of the primal in the plan's
              entries, balls as explicit constraints. The problem is convex, so a point that satisfies them (checked
              below) is the solution.
  emd         ot.emd2_1d, the limit of the scalar problem as epsilon goes to 0

Values are <C,G> + eps sum G (log(G/(a b)) - 1) + R1 + R2 with R = tau sum a (r log r - r + 1) for KL, the same with
entropy * eps for the ball, r = row sum / a.
"""
import json
import sys
import warnings

import numpy as np
import ot
from scipy.optimize import brentq

rng = np.random.default_rng(20240)


def penalty(policy, weights, sums, eps):
    if policy["kind"] in ("exact", "free"):
        return 0.0
    r = sums / weights
    strength = policy["strength"] if policy["kind"] == "kl" else policy["entropy"] * eps
    return strength * float(np.sum(weights * (r * np.log(r) - r + 1)))


def record(kind, C, a, b, eps, rows, columns, G):
    value = np.sum(C * G) + eps * np.sum(G * (np.log(G / np.outer(a, b)) - 1))
    value += penalty(rows, a, G.sum(1), eps) + penalty(columns, b, G.sum(0), eps)
    return dict(source=kind, n=len(a), m=len(b), epsilon=eps, rows=rows, columns=columns, cost=C.ravel().tolist(),
                a=a.tolist(), b=b.tolist(), plan=G.ravel().tolist(), transport_cost=float(np.sum(C * G)),
                value=float(value))


def weights(n, equal=False):
    w = np.ones(n) if equal else rng.uniform(0.2, 2, n)
    return w / w.sum()


EXACT, FREE = dict(kind="exact"), dict(kind="free")


# ---- POT ----------------------------------------------------------------------------------------------------------
def pot_balanced(n, m, eps, kind):
    a, b = weights(n), weights(m)
    C = rng.uniform(0, 3, (n, m)) if kind == "uniform" else \
        np.abs(rng.normal(size=(n, 1)) - rng.normal(size=(1, m))) ** 2
    G = ot.sinkhorn(a, b, C, eps, method="sinkhorn_log", numItermax=200000, stopThr=1e-14)
    assert abs(G.sum(0) - b).sum() < 1e-11 and abs(G.sum(1) - a).sum() < 1e-11
    return record("sinkhorn", C, a, b, eps, EXACT, EXACT, G)


def pot_unbalanced(n, m, eps, tau1, tau2):
    a, b = weights(n), weights(m)
    C = rng.uniform(0, 2, (n, m))
    G = ot.unbalanced.sinkhorn_unbalanced(a, b, C, eps, (tau1, tau2), reg_type="kl", numItermax=200000, stopThr=1e-15)
    side = lambda tau: EXACT if np.isinf(tau) else dict(kind="kl", strength=tau)
    return record("sinkhorn", C, a, b, eps, side(tau1), side(tau2), G)


# ---- Newton on the primal's optimality conditions -----------------------------------------------------------------
class Primal:
    def __init__(self, C, a, b, eps, rows, columns):
        self.C, self.eps, self.shape = C.ravel(), eps, C.shape
        self.ref = np.outer(a, b).ravel()
        n, m = C.shape
        R, S = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))  # row sums, column sums
        self.sides = [(R, a, rows), (S, b, columns)]
        lines, rhs = [], []
        for A, w, policy in self.sides:
            if policy["kind"] == "exact":
                lines.append(A), rhs.append(w)
            if policy["kind"] == "ball":
                lines.append(np.ones((1, n * m))), rhs.append([1.0])
        self.A = np.vstack(lines) if lines else np.zeros((0, n * m))
        self.rhs = np.concatenate(rhs) if lines else np.zeros(0)

    def smooth(self, g, ball):
        """Gradient and Hessian of the objective plus ball[k] * (sum w (r-1)^2) per side."""
        grad = self.C + self.eps * np.log(g / self.ref)
        H = np.diag(self.eps / g)
        for (A, w, policy), lam in zip(self.sides, ball):
            strength = {"kl": policy.get("strength"), "ball": policy.get("entropy", 0) * self.eps}.get(policy["kind"])
            if strength is None:
                continue
            s = A @ g
            d, curve = strength * np.log(s / w), strength / s
            if policy["kind"] == "ball":
                d, curve = d + 2 * lam * (s / w - 1), curve + 2 * lam / w
            grad = grad + A.T @ d
            H = H + A.T @ (curve[:, None] * A)
        return grad, H

    def distance(self, g, k):
        A, w, _ = self.sides[k]
        return np.sum(w * (A @ g / w - 1) ** 2)

    def minimise(self, ball, g=None):
        """Equality-constrained Newton at fixed ball multipliers; far steps are taken in log g, so entries stay positive."""
        g = self.ref * np.exp(-(self.C - self.C.min()) / self.eps) if g is None else g
        g = np.maximum(g / g.sum(), 1e-12)
        for _ in range(500):
            grad, H = self.smooth(g, ball)
            k = len(self.rhs)
            h = np.sqrt(g)  # with dg = h z the objective's own part of the Hessian is eps * I
            K = np.block([[H * np.outer(h, h), (self.A * h).T], [self.A * h, np.zeros((k, k))]])
            step = np.linalg.lstsq(K, np.concatenate([-grad * h, self.rhs - self.A @ g]), rcond=1e-14)[0]
            x = step[: len(g)] / h
            length = min(1.0, 0.7 / max(abs(x).max(), 1e-300))
            g = g * np.exp(length * x) if length < 1 else g * (1 + x) if abs(x).max() < 0.5 else g * np.exp(x)
            if abs(x).max() < 1e-13:
                break
        return g, (step[len(g):] if k else np.zeros(0))

    def solve(self):
        spread = [p.get("spread") for _, _, p in self.sides]
        ball = [0.0, 0.0]
        g, _ = self.minimise(ball)
        for _ in range(60):
            worst = 0.0
            for k in (0, 1):
                if spread[k] is None:
                    continue
                def excess(lam):
                    trial = list(ball)
                    trial[k] = lam
                    return np.log(self.distance(self.minimise(trial, g)[0], k) / spread[k])
                before = ball[k]
                if excess(0.0) <= 0:
                    ball[k] = 0.0
                else:
                    high = 1.0
                    while excess(high) > 0:
                        high *= 4
                    ball[k] = brentq(excess, 0.0, high, xtol=1e-15, rtol=1e-14)
                worst = max(worst, abs(ball[k] - before) / (1 + ball[k]))
            g, nu = self.minimise(ball, g)
            if worst < 1e-13:
                break
        self.check(g, ball, spread)
        return g.reshape(self.shape), ball

    def check(self, g, ball, spread):
        grad, _ = self.smooth(g, ball)
        nu = np.linalg.lstsq(self.A.T, -grad, rcond=None)[0] if len(self.rhs) else np.zeros(0)
        assert abs(grad + self.A.T @ nu).max() < 1e-10, abs(grad + self.A.T @ nu).max()
        assert abs(self.A @ g - self.rhs).max(initial=0) < 1e-12
        for k in (0, 1):
            if spread[k] is not None:
                d = self.distance(g, k)
                assert ball[k] >= 0 and d <= spread[k] * (1 + 1e-11), (d, spread[k])
                assert ball[k] == 0 or abs(d / spread[k] - 1) < 1e-10


def kkt(n, m, eps, rows, columns, outlier):
    a, b = weights(n), weights(m)
    C = (rng.uniform(-1, 1, (n, 1)) - rng.uniform(-1, 1, (1, m))) ** 2
    if outlier:  # a row without a partner
        C[0] += 2
    primal = Primal(C, a, b, eps, rows, columns)
    G, ball = primal.solve()
    out = record("kkt", C, a, b, eps, rows, columns, G)
    out["ball_multipliers"] = [float(x) for x in ball]
    return out


def scalar_limit(n, m, equal):
    t, s = rng.normal(size=n), rng.normal(0.5, 2, size=m)
    a, b = weights(n, equal), weights(m, equal)
    return dict(t=t.tolist(), s=s.tolist(), a=a.tolist(), b=b.tolist(),
                cost=float(ot.emd2_1d(t, s, a, b, metric="sqeuclidean")))


warnings.simplefilter("error")
plans = [pot_balanced(n, m, eps, kind) for n, m, eps, kind in [
    (6, 9, 0.5, "uniform"), (12, 7, 0.1, "uniform"), (15, 15, 0.05, "uniform"), (10, 13, 0.2, "line"),
    (1, 5, 0.3, "uniform"), (5, 1, 0.3, "uniform"), (8, 8, 20.0, "uniform")]]
inf = float("inf")
plans += [pot_unbalanced(n, m, eps, t1, t2) for n, m, eps, t1, t2 in [
    (7, 9, 0.1, 1.0, 1.0), (9, 6, 0.05, 0.3, 2.0), (8, 8, 1.0, 0.2, 0.2), (6, 7, 0.1, inf, 0.7), (7, 6, 0.1, 0.7, inf)]]
tight, wide = dict(kind="ball", spread=0.05, entropy=1.0), dict(kind="ball", spread=50.0, entropy=1.0)
sharp = dict(kind="ball", spread=0.3, entropy=0.1)
KL = dict(kind="kl", strength=0.8)
plans += [kkt(n, m, eps, r, c, outlier) for n, m, eps, r, c, outlier in [
    (5, 4, 0.3, tight, EXACT, True), (4, 5, 0.3, EXACT, tight, False), (5, 5, 0.3, tight, tight, True),
    (4, 5, 0.5, wide, EXACT, False), (5, 4, 0.5, wide, wide, False), (5, 4, 0.3, tight, wide, True),
    (5, 5, 0.1, sharp, EXACT, True), (5, 4, 0.2, sharp, sharp, True), (4, 4, 3.0, sharp, tight, True),
    (5, 4, 0.3, tight, KL, True), (4, 5, 0.3, KL, sharp, False), (5, 4, 0.3, tight, FREE, True),
    (4, 5, 0.3, FREE, tight, False), (5, 4, 0.3, FREE, EXACT, False), (4, 5, 0.3, EXACT, FREE, False),
    (5, 4, 0.3, KL, FREE, False), (4, 5, 0.3, KL, KL, False), (4, 5, 0.8, FREE, FREE, False),
    (4, 5, 0.3, FREE, KL, False), (5, 4, 0.3, KL, EXACT, True)]]
for p in plans:
    active = p.get("ball_multipliers")
    print(p["source"], p["n"], p["m"], p["rows"]["kind"], p["columns"]["kind"], active, file=sys.stderr)
limits = [scalar_limit(40, 40, True), scalar_limit(30, 47, False), scalar_limit(1, 20, False), scalar_limit(60, 25, False)]
json.dump(dict(plans=plans, scalar_limits=limits), sys.stdout)
