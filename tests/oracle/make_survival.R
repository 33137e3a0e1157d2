# Writes ../data/survival.json: Cox regressions by R's survival, and mixtures and adjusted regressions of rows partly linked
# wrongly by R's postlink, on data simulated here. If lifem.csv is given, postlink's answers for it are written, too (the data
# is not). The density of a response with a wrong link is given to postlink as unshuffle takes it.
#
#   Rscript make_survival.R FOLDER_OF_POSTLINK/R [lifem.csv] > ../data/survival.json
#
# postlink's coxphELE takes as `cens` what its text calls the opposite: it is given 1 for events here.
suppressMessages({library(survival); library(jsonlite)})
arguments <- commandArgs(TRUE)
for (file in c("mixture_helpers", "mixture_glm", "mixture_coxph", "ele_glm", "ele_coxph")) {
  source(file.path(arguments[1], paste0(file, ".R")))
}
nleqslv <- nleqslv::nleqslv
set.seed(24)

kernel_density <- function(y) {
  h <- sqrt(mean((y - mean(y))^2)) * (4 / (3 * length(y)))^0.2
  sapply(y, function(at) mean(dnorm(at, y, h)))
}
# The same from a grid of eight points per bandwidth, as for many rows: each value is shared between its neighbours, and
# logarithms are interpolated.
tabulated_density <- function(y) {
  h <- sqrt(mean((y - mean(y))^2)) * (4 / (3 * length(y)))^0.2
  low <- min(y) - 6 * h
  high <- max(y) + 6 * h
  points <- ceiling((high - low) / h * 8) + 1
  grid <- seq(low, high, length.out = points)
  at <- (y - low) / (grid[2] - grid[1])
  below <- pmin(floor(at), points - 2)
  mass <- numeric(points)
  for (i in seq_along(y)) mass[below[i] + 1:2] <- mass[below[i] + 1:2] + c(1 - at[i] + below[i], at[i] - below[i])
  logs <- log(sapply(grid, function(g) sum(mass * dnorm(g, grid, h))) / length(y))
  exp(approx(grid, logs, y)$y)
}
shares <- function(y) as.vector(table(y)[as.character(y)]) / length(y)

# --- survival: ties, censoring, weights of one
n <- 90
x <- round(cbind(rnorm(n), rbinom(n, 1, 0.4)), 6)
time <- rexp(n, 0.2 * exp(x %*% c(0.7, -0.5)))
limit <- runif(n, 1, 12)
event <- as.numeric(time <= limit)
tied <- ceiling(pmin(time, limit))
fine <- round(pmin(time, limit), 6)
known <- function(t) {
  fit <- coxph(Surv(t, event) ~ x, ties = "efron", control = coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 100))
  robust <- coxph(Surv(t, event) ~ x, ties = "efron", robust = TRUE, control = coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 100))
  list(robust_errors = unname(sqrt(diag(vcov(robust)))), time = t, coefficients = unname(coef(fit)), std_errors = unname(sqrt(diag(vcov(fit)))), log_likelihood = fit$loglik[2])
}
out <- list(known = list(x = x, event = event, tied = known(tied), fine = known(fine)))

# --- rows in order, some of them linked wrongly, with a column on which that depends
moved <- function(y, wrong) {
  rows <- which(wrong)
  y[rows] <- y[c(rows[-1], rows[1])]
  y
}
n <- 240
x <- round(cbind(rnorm(n), rbinom(n, 1, 0.5)), 6)
v <- round(runif(n, -2, 2), 6)
right <- runif(n) < plogis(1.2 + 0.9 * v)
eta <- as.vector(x %*% c(1.1, -0.8))
z <- cbind(one = 1, v = v)
colnames(x) <- c("x1", "x2")
design <- cbind(one = 1, x)
given <- list(x = unname(x), v = v)
mixture <- function(y, family, fy) {
  fit <- glmMixture(design, y, family, z, control = list(tol = 1e-13, max.iter = 20000, fy = fy))
  list(y = y, coefficients = unname(fit$coefficients), odds = unname(as.vector(fit$m.coefficients)),
       match = unname(as.vector(fit$match.prob))[1:20], dispersion = fit$dispersion)
}
y <- moved(round(0.5 + eta + 0.5 * rnorm(n), 6), !right)
given$gaussian <- mixture(y, "gaussian", kernel_density(y))
y <- moved(rpois(n, exp(0.8 + eta)), !right)
given$poisson <- mixture(y, "poisson", shares(y))
y <- moved(round(rgamma(n, 4, 4 / exp(0.5 + eta)), 6), !right)
given$gamma <- mixture(y, "gamma", kernel_density(log(y)) / y)
y <- moved(rbinom(n, 1, plogis(1.5 * eta)), !right)
given$binomial <- list(y = y)

adjusted_rows <- seq_len(n)
n <- 500
x <- round(cbind(rnorm(n), rbinom(n, 1, 0.5)), 6)
v <- round(runif(n, -2, 2), 6)
right <- runif(n) < plogis(1 + 0.6 * v)
z <- cbind(one = 1, v = v)
eta <- as.vector(x %*% c(1.4, -0.8))
time <- rexp(n, exp(eta))
limit <- rexp(n, 0.15)
order_of <- seq_len(n); order_of <- moved(order_of, !right)
status <- as.numeric(time <= limit)[order_of]
time <- round(pmin(time, limit)[order_of], 9)
fit <- coxphMixture(x, time, 1 - status, z, control = list(tol = 1e-12, max.iter = 20000, louis.k = 2))
given$cox <- list(x = x, v = v, time = time, event = status, coefficients = unname(fit$coefficients), odds = unname(fit$m.coefficients),
                  match = as.vector(fit$match.prob)[1:20])
out$in_order <- given

# --- adjusted for a stated rate, in two blocks
n <- length(adjusted_rows)
blocks <- rep(1:2, each = n / 2)
rates <- c(0.15, 0.3)
own <- (length(time) / 2) / (length(time) / 2 - 1)  # coxphELE lets a wrong link point at the row itself, glmELE does not
adjusted <- function(y, family) {
  fit <- suppressWarnings(glmELE(design, y, family, m.rate = rates, audit.size = NULL, blocks = blocks, weight.matrix = "all"))
  list(ratio = unname(fit$coefficients["ratio", ]), "lahiri-larsen" = unname(fit$coefficients["LL", ]),
       blue = unname(fit$coefficients["BLUE", ]))
}
out$adjusted <- list(gaussian = adjusted(given$gaussian$y, "gaussian"), poisson = adjusted(given$poisson$y, "poisson"),
                     gamma = adjusted(given$gamma$y, "gamma"), binomial = adjusted(given$binomial$y, "binomial"),
                     cox = unname(coxphELE(x, time, status, m.rate = rates * own,
                                           blocks = rep(1:2, each = length(time) / 2), control = list(init.beta = c(0.7, -0.6)),
                                           method = "Newton")$coefficients))

# --- postlink's own example
if (length(arguments) > 1) {
  lifem <- read.csv(arguments[2])
  lifem <- lifem[!is.na(lifem$age_at_death), ]
  cubic <- cbind(one = 1, a = lifem$unit_yob, b = lifem$unit_yob^2, c = lifem$unit_yob^3)
  safe <- lifem$hndlnk %in% c("True", "TRUE", TRUE)
  y <- lifem$age_at_death
  fit <- glmMixture(cubic, y, "gaussian", cbind(one = 1, f = lifem$commf, l = lifem$comml), safe.matches = safe,
                    control = list(tol = 1e-13, max.iter = 50000, fy = tabulated_density(y)))
  errors <- sqrt(diag(fit$var))
  own <- glmMixture(cubic, y, "gaussian", cbind(one = 1, f = lifem$commf, l = lifem$comml), m.rate = 0.05, safe.matches = safe)
  ele <- suppressWarnings(glmELE(cubic, y, "gaussian", m.rate = 0.05, blocks = rep(1, nrow(lifem)), weight.matrix = "all"))
  out$lifem <- list(coefficients = unname(fit$coefficients), odds = unname(as.vector(fit$m.coefficients)),
                    std_errors = unname(errors[1:4]), dispersion = fit$dispersion,
                    match = list(row = which(!safe)[1:20] - 1, probability = as.vector(fit$match.prob)[which(!safe)[1:20]]),
                    example = list(coefficients = unname(own$coefficients), odds = unname(as.vector(own$m.coefficients))),
                    adjusted = list(ratio = unname(ele$coefficients["ratio", ]), "lahiri-larsen" = unname(ele$coefficients["LL", ]),
                                    blue = unname(ele$coefficients["BLUE", ])),
                    adjusted_errors = lapply(ele$var, function(v) unname(sqrt(diag(v)))))
}
cat(toJSON(out, digits = 14, auto_unbox = TRUE, pretty = FALSE), "\n")
