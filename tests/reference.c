/* SPDX-License-Identifier: MIT
 * Float64 references and bounds; see reference.h. The references' own errors are 2^-29 of the bounds'.
 */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LN2 0.69314718055994530942
#define LOG2E 1.44269504088896340736

/* Second-order terms: every first-order relative error here is below 2^-8. */
#define SECOND_ORDER 1.01

#define TINY 0x1p-149

/* Weights and factors below 2^-100 are dropped; times 8 for both kinds and the division by their sum. */
#define DROPPED 0x1p-97

/* Relative error of attention's 2^t (arch/kernels/exp.inc). */
static const double exp2_error = 2.08e-7; /* 2^-22.2 */

/* ---- memory ---- */

static struct chunk {
    struct chunk *next;
    double data[];
} * chunks;

static double *zeros(size_t n)
{
    struct chunk *c = calloc(1, sizeof *c + (n + 1) * sizeof(double));
    if (!c) {
        printf("Bail out! out of memory\n");
        exit(99);
    }
    c->next = chunks;
    chunks = c;
    return c->data;
}

struct inexact inexact_new(size_t n)
{
    return (struct inexact){zeros(n), zeros(n)};
}

struct inexact inexact_rows(size_t rows, size_t cols, const float *x, size_t ld)
{
    struct inexact r = inexact_new(rows * cols);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            r.value[i * cols + j] = (double)x[i * ld + j];
    return r;
}

void reference_release(void)
{
    while (chunks) {
        struct chunk *c = chunks;
        chunks = c->next;
        free(c);
    }
}

static double allowed;

void reference_allow(double slack)
{
    allowed = slack;
}

void check_inexact(size_t rows, size_t cols, const float *got, size_t ld, struct inexact want, const char *what,
                   double *worst)
{
    size_t failures = 0, where = 0;
    for (size_t i = 0; i < rows * cols; i++) {
        double value = (double)got[i / cols * ld + i % cols];
        double error = value == want.value[i] ? 0.0 : fabs(value - want.value[i]); /* infinities */
        if (!(error <= want.error[i] + allowed) && failures++ == 0)
            where = i;
        if (error > *worst * want.error[i] && want.error[i] > 0.0)
            *worst = error / want.error[i];
    }
    size_t at = cols ? where / cols * ld + where % cols : 0;
    if (failures > 0)
        check_that(0, "%s: %zu of %zu x %zu wrong, first (%zu, %zu) is %.9g, not %.9g +- %.3g", what, failures, rows,
                   cols, where / cols, where % cols, (double)got[at], want.value[where], want.error[where]);
    else
        check_that(1, "%s", what);
}

double gamma_of(double n)
{
    return n * UNIT / (1.0 - n * UNIT);
}

double reduction_depth(size_t n)
{
    if (n == 0)
        return 0.0;
    size_t block = n < HEED_REDUCTION_BLOCK ? n : HEED_REDUCTION_BLOCK;
    size_t chunk_adds = (block - 1) / HEED_LANES, block_adds = (n - 1) / HEED_REDUCTION_BLOCK;
    double depth = (double)(chunk_adds + 5 + block_adds);
    return depth < (double)(n - 1) ? depth : (double)(n - 1);
}

double ulp_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return x == 0.0 || exponent < -125 ? TINY : ldexp(1.0, exponent - 24);
}

/* ---- products ---- */

/* |x| as the library may see it. */
static double largest_of(struct inexact x, size_t i)
{
    return fabs(x.value[i]) + x.error[i];
}

struct inexact reference_matmul(const struct matmul_problem *p)
{
    struct inexact y = inexact_new(p->m * p->n);
    size_t a_row = p->transpose_a ? 1 : p->lda, a_col = p->transpose_a ? p->lda : 1;
    size_t b_row = p->transpose_b ? 1 : p->ldb, b_col = p->transpose_b ? p->ldb : 1;
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            double sum = 0.0, size = 0.0, c = p->beta == 0.0f ? 0.0 : (double)p->beta * (double)p->c[i * p->ldc + j];
            for (size_t l = 0; p->alpha != 0.0f && l < p->k; l++) {
                double product = (double)p->a[i * a_row + l * a_col] * (double)p->b[l * b_row + j * b_col];
                sum += product;
                size += fabs(product);
            }
            double alpha = (double)p->alpha, k = (double)p->k;
            y.value[i * p->n + j] = alpha * sum + c;
            y.error[i * p->n + j] =
                gamma_of(k + 2) * (fabs(alpha) * size + fabs(c)) + (k + 2) * (1.0 + fabs(alpha)) * TINY;
        }
    return y;
}

/* The largest slope of the GELUs and of SiLU is below 1.13. */
static double slope_of(heed_activation activation)
{
    return activation == HEED_ACTIVATION_NONE || activation == HEED_ACTIVATION_RELU ? 1.0 : 1.13;
}

static double activation_value(heed_activation activation, double x)
{
    switch (activation) {
    case HEED_ACTIVATION_RELU:
        return x < 0.0 ? 0.0 : x;
    case HEED_ACTIVATION_GELU_ERF:
        return 0.5 * x * erfc(-x * sqrt(0.5));
    case HEED_ACTIVATION_GELU_TANH: /* (1 + tanh z) / 2 = 1 / (1 + e^-2z), which does not cancel */
        return x / (1.0 + exp(-2.0 * sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case HEED_ACTIVATION_SILU:
        return x / (1.0 + exp(-x));
    case HEED_ACTIVATION_NONE:
        break;
    }
    return x;
}

/* The contract of heed_activate: 4 ulp or u |x| for the GELUs and SiLU. */
struct inexact reference_activate(heed_activation activation, size_t n, struct inexact x)
{
    struct inexact y = inexact_new(n);
    for (size_t i = 0; i < n; i++) {
        y.value[i] = activation_value(activation, x.value[i]);
        y.error[i] = slope_of(activation) * x.error[i];
        if (slope_of(activation) > 1.0)
            y.error[i] += fmax(4.0 * ulp_of(fabs(y.value[i]) + y.error[i]), UNIT * largest_of(x, i));
    }
    return y;
}

struct inexact reference_gated(heed_activation activation, size_t n, struct inexact gate, struct inexact up)
{
    struct inexact y = reference_activate(activation, n, gate);
    for (size_t i = 0; i < n; i++) {
        y.error[i] = y.error[i] * largest_of(up, i) + fabs(y.value[i]) * up.error[i];
        y.value[i] *= up.value[i];
        y.error[i] += UNIT * largest_of(y, i) + TINY;
    }
    return y;
}

struct inexact reference_linear(size_t m, size_t in, size_t out, struct inexact x, const float *w, const float *bias,
                                heed_activation activation, struct inexact residual)
{
    struct inexact acc = inexact_new(m * out);
    double rounding = gamma_of((double)in + 2), underflow = ((double)in + 2) * TINY;
    double *sum = zeros(out), *size = zeros(out), *carried = zeros(out);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < out; j++) {
            sum[j] = bias ? (double)bias[j] : 0.0;
            size[j] = fabs(sum[j]);
            carried[j] = 0.0;
        }
        for (size_t l = 0; l < in; l++) {
            double xv = x.value[i * in + l], xs = largest_of(x, i * in + l), xe = x.error[i * in + l];
            for (size_t j = 0; j < out; j++) {
                double wv = (double)w[l * out + j];
                sum[j] += xv * wv;
                size[j] += xs * fabs(wv);
                carried[j] += xe * fabs(wv);
            }
        }
        for (size_t j = 0; j < out; j++) {
            acc.value[i * out + j] = sum[j];
            acc.error[i * out + j] = rounding * size[j] + carried[j] + underflow;
        }
    }
    struct inexact y = reference_activate(activation, m * out, acc);
    for (size_t i = 0; residual.value && i < m * out; i++) {
        y.value[i] += residual.value[i];
        y.error[i] += residual.error[i];
        y.error[i] += UNIT * largest_of(y, i);
    }
    return y;
}

/* ---- rows ---- */

/* exp has relative error e = 2 u; its argument x - max one of u, that is |x - max| u in the result.
 * Weighted over the row the latter is at most ln n, and the sum adds `depth` roundings; then one for
 * 1 / sum and one for the product. */
struct inexact reference_softmax(size_t rows, size_t cols, const float *x, size_t ld)
{
    struct inexact y = inexact_new(rows * cols);
    double common = (log((double)cols) + reduction_depth(cols) + 3.0) * UNIT + 2.0 * 2.0 * UNIT;
    for (size_t r = 0; r < rows; r++) {
        const float *row = x + r * ld;
        double max = -INFINITY, sum = 0.0;
        for (size_t i = 0; i < cols; i++)
            max = fmax(max, (double)row[i]);
        for (size_t i = 0; i < cols; i++)
            sum += exp((double)row[i] - max);
        for (size_t i = 0; i < cols; i++) {
            double below = max - (double)row[i], value = exp(-below) / sum;
            y.value[r * cols + i] = value;
            y.error[r * cols + i] = (value > 0.0 ? SECOND_ORDER * value * (below * UNIT + common) : 0.0) + 2.0 * TINY;
        }
    }
    return y;
}

static double mask_value(struct score_mask mask, size_t i, size_t j)
{
    if (mask.additive)
        return (double)mask.additive[i * mask.ld + j];
    return mask.boolean && !mask.boolean[i * mask.ld + j] ? -INFINITY : 0.0;
}

/* Scores z = scale x + mask with their errors d: the product and the sum round. An error of a score moves
 * its own weight by its own share and all weights by the mean. As in reference_softmax otherwise; the
 * logarithm's sum has the relative error `common`, log one ulp, and the two differences round. */
static void masked_softmax_row(size_t cols, const float *x, float scale, struct score_mask mask, size_t i,
                               int logarithm, double *y, double *error)
{
    double *z = zeros(cols), *d = zeros(cols), max = -INFINITY, sum = 0.0, drift = 0.0;
    double common = (log((double)cols) + reduction_depth(cols) + 3.0) * UNIT + 2.0 * 2.0 * UNIT;
    for (size_t j = 0; j < cols; j++) {
        double product = (double)scale * (double)x[j], m = mask_value(mask, i, j);
        z[j] = m == -INFINITY ? m : product + m;
        d[j] =
            (scale != 1.0f ? UNIT * fabs(product) + TINY : 0.0) + (m != 0.0 ? SECOND_ORDER * UNIT * fabs(z[j]) : 0.0);
        max = fmax(max, z[j]);
    }
    for (size_t j = 0; j < cols; j++)
        if (z[j] != -INFINITY) {
            sum += exp(z[j] - max);
            drift += exp(z[j] - max) * d[j];
        }
    for (size_t j = 0; j < cols; j++) {
        double below = max - z[j];
        y[j] = logarithm ? -INFINITY : 0.0;
        error[j] = 0.0;
        if (z[j] == -INFINITY)
            continue;
        double moved = d[j] + drift / sum;
        y[j] = logarithm ? -below - log(sum) : exp(-below) / sum;
        if (logarithm)
            error[j] =
                SECOND_ORDER * (below * UNIT + common + moved + 2.0 * UNIT * log(sum) + UNIT * fabs(y[j])) + TINY;
        else
            error[j] = SECOND_ORDER * y[j] * (below * UNIT + common + moved) + 2.0 * TINY;
    }
}

struct inexact reference_masked_softmax(size_t rows, size_t cols, const float *x, size_t ld, float scale,
                                        struct score_mask mask, int logarithm)
{
    struct inexact y = inexact_new(rows * cols);
    for (size_t i = 0; i < rows; i++)
        masked_softmax_row(cols, x + i * ld, scale, mask, i, logarithm, y.value + i * cols, y.error + i * cols);
    return y;
}

/* With a_j = x_j - x_0, c_j = a_j - mean a, s = sqrt(mean c^2 + eps) and D = depth of a sum:
 *   computed z_j   = a_j (1 + u)
 *   computed mean  = mean a + E,              E <= g(D + 2) mean |a| + 2^-149
 *   computed d_j   = c_j + D_j,               D_j <= u (|a_j| + |c_j| + E) + E + what x brought along
 *   sqrt(mean d^2 + eps) within rho = rms(D) of s: it is the length of a vector that moved so far
 *   computed root  = that times 1 + g(D + 6) / 2 + u: the sum of squares (one rounding more without
 *                    FMA), / n, + eps, sqrt
 * so d r is within t = (D_j + |c_j| rho / s) / (s - rho) of c_j / s before, and by the factor's g(D + 6) / 2 + 3 u
 * after rounding; scale and shift round twice. */
struct moments {
    double mean, mean_error; /* of x - x[0] */
    double s, rho, left, factor, *moved;
};

static struct moments moments_of(size_t n, const double *x, const double *dx, double eps)
{
    struct moments m = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, zeros(n)};
    double mean_size = 0.0, mean_moved = 0.0, square = 0.0, depth = reduction_depth(n);
    for (size_t j = 0; j < n; j++) {
        m.mean += (x[j] - x[0]) / (double)n;
        mean_size += (fabs(x[j] - x[0]) + dx[j] + dx[0]) / (double)n;
        mean_moved += dx[j] / (double)n;
    }
    m.mean_error = mean_size > 0.0 ? SECOND_ORDER * gamma_of(depth + 2) * mean_size + TINY : 0.0;
    for (size_t j = 0; j < n; j++) {
        double a = x[j] - x[0], c = a - m.mean;
        m.moved[j] = dx[j] + mean_moved + m.mean_error +
                     SECOND_ORDER * UNIT * (fabs(a) + dx[j] + dx[0] + fabs(c) + dx[j] + mean_moved + m.mean_error);
        square += c * c / (double)n;
        m.rho += m.moved[j] * m.moved[j] / (double)n;
    }
    m.rho = sqrt(m.rho);
    m.s = sqrt(square + eps);
    m.left = m.s - m.rho;
    m.factor = SECOND_ORDER * (gamma_of(depth + 6) / 2 + 3 * UNIT + 2 * TINY / (m.left * m.left));
    return m;
}

static void layernorm_row(size_t n, const double *x, const double *dx, const float *scale, const float *shift,
                          double eps, double *y, double *dy)
{
    const struct moments m = moments_of(n, x, dx, eps);
    for (size_t j = 0; j < n; j++) {
        double gain = scale ? fabs((double)scale[j]) : 1.0, offset = shift ? (double)shift[j] : 0.0;
        double z = m.s > 0.0 ? (x[j] - x[0] - m.mean) / m.s : 0.0;
        y[j] = z * (scale ? (double)scale[j] : 1.0) + offset;
        if (m.rho == 0.0) {
            dy[j] = 0.0;
        } else if (!(m.left > 0.0)) {
            dy[j] = INFINITY;
        } else {
            double t = (m.moved[j] + fabs(z) * m.rho) / m.left;
            t += m.factor * (fabs(z) + t);
            dy[j] = gain * t + SECOND_ORDER * UNIT * (2.0 * gain * (fabs(z) + t) + fabs(offset)) + (gain + 1.0) * TINY;
        }
    }
}

/* The mean is x_0 plus that of the differences, rounded; the inverse lacks the last products' roundings. */
struct inexact reference_moments(size_t rows, size_t cols, struct inexact x, float eps)
{
    struct inexact y = inexact_new(2 * rows);
    for (size_t r = 0; r < rows; r++) {
        const double *row = x.value + r * cols, *moved = x.error + r * cols;
        const struct moments m = moments_of(cols, row, moved, (double)eps);
        y.value[r] = row[0] + m.mean;
        y.error[r] = (moved[0] + m.mean_error) * (1.0 + UNIT) + UNIT * fabs(y.value[r]) + TINY;
        y.value[rows + r] = m.s > 0.0 ? 1.0 / m.s : 0.0;
        y.error[rows + r] = m.rho == 0.0 && m.s == 0.0 ? 0.0
                            : m.left > 0.0             ? (m.rho / m.left + m.factor) / m.s
                                                       : INFINITY;
    }
    return y;
}

struct inexact reference_layernorm(size_t rows, size_t cols, struct inexact x, const float *scale, const float *shift,
                                   float eps)
{
    struct inexact y = inexact_new(rows * cols);
    for (size_t r = 0; r < rows; r++)
        layernorm_row(cols, x.value + r * cols, x.error + r * cols, scale, shift, (double)eps, y.value + r * cols,
                      y.error + r * cols);
    return y;
}

/* The mean square has depth + 4 roundings (one more without FMA, / n, + eps), halved by the root; then
 * root and reciprocal, and two products. Squares and their sum may underflow by 2^-149 each. The root is the norm of a
 * vector, which moves by no more than the mean square of its elements' movements does. */
static void rmsnorm_row(size_t n, const double *x, const double *dx, const float *scale, double eps, double *y,
                        double *dy, double *inverse, double *inverse_error)
{
    double square = 0.0, rho = 0.0;
    for (size_t j = 0; j < n; j++) {
        square += x[j] * x[j] / (double)n;
        rho += dx[j] * dx[j] / (double)n;
    }
    rho = sqrt(rho);
    double root = sqrt(square + eps), left = root - rho;
    double underflow = square > 0.0 ? 2.0 * TINY / (left * left) : 0.0;
    double factor = SECOND_ORDER * (gamma_of(reduction_depth(n) + 4) / 2 + 2 * UNIT + underflow);
    int known = underflow < 0.25 && (left > 0.0 || root + rho == 0.0);
    *inverse = root > 0.0 ? 1.0 / root : 0.0;
    *inverse_error = !known ? INFINITY : root > 0.0 ? (rho / left + factor) / root : 0.0;
    for (size_t j = 0; j < n; j++) {
        double gain = scale ? fabs((double)scale[j]) : 1.0, z = fabs(x[j] * *inverse);
        double moved = dx[j] + z * rho > 0.0 ? (dx[j] + z * rho) / left : 0.0, t = moved + factor * (z + moved);
        y[j] = x[j] * *inverse * (scale ? (double)scale[j] : 1.0);
        dy[j] = z + moved == 0.0 ? 0.0 : gain * t + SECOND_ORDER * UNIT * 2.0 * gain * (z + t) + (gain + 1.0) * TINY;
        if (!known && z + dx[j] > 0.0)
            dy[j] = INFINITY;
    }
}

struct inexact reference_rmsnorm(size_t rows, size_t cols, struct inexact x, const float *scale, float eps,
                                 struct inexact inverse)
{
    struct inexact y = inexact_new(rows * cols);
    for (size_t r = 0; r < rows; r++)
        rmsnorm_row(cols, x.value + r * cols, x.error + r * cols, scale, (double)eps, y.value + r * cols,
                    y.error + r * cols, inverse.value + r, inverse.error + r);
    return y;
}

/* The sum of squares has depth + 2 roundings, halved by the root; then root, reciprocal, product. */
struct inexact reference_l2(size_t rows, size_t cols, float eps, const float *x, size_t ld)
{
    struct inexact y = inexact_rows(rows, cols, x, ld);
    double relative = SECOND_ORDER * (gamma_of(reduction_depth(cols) + 2) / 2 + 3 * UNIT);
    for (size_t r = 0; r < rows; r++) {
        double *row = y.value + r * cols, square = 0.0;
        for (size_t j = 0; j < cols; j++)
            square += row[j] * row[j];
        double norm = fmax(sqrt(square), (double)eps);
        for (size_t j = 0; j < cols; j++) {
            row[j] = norm > 0.0 ? row[j] / norm : 0.0;
            y.error[r * cols + j] = relative * fabs(row[j]) + TINY;
        }
    }
    return y;
}

/* rows - 1 additions, the rounding of 1 / rows and that of the product. */
struct inexact reference_mean(size_t rows, size_t cols, const float *x, size_t ld)
{
    struct inexact y = inexact_new(cols);
    for (size_t j = 0; j < cols; j++) {
        double size = 0.0;
        for (size_t i = 0; i < rows; i++) {
            y.value[j] += (double)x[i * ld + j] / (double)rows;
            size += fabs((double)x[i * ld + j]) / (double)rows;
        }
        y.error[j] = gamma_of((double)rows + 1) * size + TINY;
    }
    return y;
}

/* The contract of heed_sinusoidal_positions. */
struct inexact reference_positions(size_t first, size_t n, size_t cols, double base)
{
    struct inexact y = inexact_new(n * cols);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < cols; j++) {
            long double position = (long double)(first + i);
            long double angle = position / powl((long double)base, (long double)(j - j % 2) / (long double)cols);
            double value = (double)(j % 2 ? cosl(angle) : sinl(angle));
            y.value[i * cols + j] = value;
            y.error[i * cols + j] = 0.51 * ulp_of(value) + (double)position * 0x1p-49;
        }
    return y;
}

/* The contract of heed_rotary_table. */
struct inexact reference_rotary_table(size_t n, const int32_t *positions, size_t dims,
                                      const heed_rotary_options *options, int quarter)
{
    size_t half = dims / 2;
    struct inexact y = inexact_new(n * half);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < half; j++) {
            long double frequency = powl((long double)options->base, -(long double)j / (long double)half) *
                                    (long double)options->position_scale;
            long double angle = (long double)positions[i] * frequency;
            if (options->factors)
                angle *= (long double)options->factors[j];
            double value = (double)((long double)options->magnitude * (quarter ? cosl(angle) : sinl(angle)));
            y.value[i * half + j] = value;
            y.error[i * half + j] = 0.51 * ulp_of(value) + fabs(options->magnitude) * (double)fabsl(angle) *
                                                               (1.0 + log(options->base)) * 0x1p-50;
        }
    return y;
}

/* ---- attention ---- */

struct inexact inexact_heads(size_t batch, size_t heads, size_t seq, size_t dim, struct inexact data,
                             const heed_heads *strides, const size_t *offsets)
{
    struct inexact dense = inexact_new(batch * heads * seq * dim);
    for (size_t b = 0; b < batch; b++)
        for (size_t h = 0; h < heads; h++)
            for (size_t i = 0; i < (offsets ? offsets[b + 1] - offsets[b] : seq); i++)
                for (size_t d = 0; d < dim; d++) {
                    size_t row = offsets ? (offsets[b] + i) * strides->row_stride
                                         : b * strides->batch_stride + i * strides->row_stride;
                    size_t from = row + h * strides->head_stride + d, to = ((b * heads + h) * seq + i) * dim + d;
                    dense.value[to] = data.value[from];
                    dense.error[to] = data.error[from];
                }
    return dense;
}

/* One query row: what it sees and what is known about the weights. The sink is a key after the last one,
 * of value 0, in a block of its own. */
struct attention_row {
    size_t keys;     /* of the sequence */
    double position; /* of the query among the keys that its length leaves */
    double *z;       /* base-2 scores; -inf: not seen */
    double *moved;   /* error of 2^(z - r)'s exponent */
    double *weight;  /* exact softmax */
    double *epsilon; /* relative error of a key's weight, as it enters both sums */
    double blocks;   /* that hold a key of the row */
    double mean_epsilon;
    double log_sum, log_sum_error;
};

static double position_of(const heed_attention_args *args, size_t b, size_t i, size_t queries, size_t keys)
{
    if (args->kv_lengths && args->kv_lengths[b] < keys)
        keys = args->kv_lengths[b];
    return args->causal == HEED_CAUSAL_TOP_LEFT ? (double)i : (double)i + (double)keys - (double)queries;
}

static int sees(const heed_attention_args *args, size_t b, size_t h, size_t i, size_t j, double position)
{
    double distance = (double)j - position;
    if (args->kv_lengths && j >= args->kv_lengths[b])
        return 0;
    if (args->causal != HEED_CAUSAL_NONE && distance > 0.0)
        return 0;
    if (args->window_left != HEED_UNBOUNDED && distance < -(double)args->window_left)
        return 0;
    if (args->window_right != HEED_UNBOUNDED && distance > (double)args->window_right)
        return 0;
    size_t at = b * args->mask.batch_stride + h * args->mask.head_stride + i * args->mask.row_stride + j;
    if (args->mask.type == HEED_MASK_BOOLEAN)
        return ((const unsigned char *)args->mask.data)[at] != 0;
    return args->mask.type != HEED_MASK_ADDITIVE || ((const float *)args->mask.data)[at] != -INFINITY;
}

static double scale_of(const heed_attention_args *args)
{
    if (args->scale == HEED_SCALE_VALUE)
        return (double)args->scale_value;
    return args->head_dim ? 1.0 / sqrt((double)args->head_dim) : 1.0;
}

/* A softcap: x = s D and C tanh(x), D and C rounded once, both products rounded; tanh has an error of 3 ulp, 6 u,
 * and carries that of x by its derivative, which is largest where x is nearest to 0. */
static double cap_score(double cap, double scale, double s, double *moved)
{
    double x = s * scale / cap, dx = *moved / (LOG2E * cap) + 2.01 * UNIT * fabs(x);
    double nearest = fmax(fabs(x) - dx, 0.0), slope = 1.0 / (cosh(nearest) * cosh(nearest));
    double z = cap * LOG2E * tanh(x);
    *moved = cap * LOG2E * (slope * dx) + 8.1 * UNIT * fabs(z) + TINY;
    return z;
}

/* Something added to z, with its product and constant (2.3 u, and u for the product where it is not fused) and
 * the sum. */
static void add_score(double added, double *z, double *moved)
{
    *moved += 3.3 * UNIT * fabs(added) + UNIT * (fabs(*z) + fabs(added));
    *z += added;
}

/* The score s = q k has error g(d + 1) |q||k| and what q and k bring along. Then z = s c with c rounded once (u)
 * and the product rounded (u, not with FMA). Exponents t = z - r round once more, below. */
static void score_row(const heed_attention_args *args, size_t b, size_t h, size_t i, const double *q, const double *dq,
                      const double *k, const double *dk, struct attention_row *row)
{
    double c = scale_of(args) * LOG2E, rounding = gamma_of((double)args->head_dim + 1);
    for (size_t j = 0; j < row->keys; j++) {
        row->z[j] = -INFINITY;
        if (!sees(args, b, h, i, j, row->position))
            continue;
        double s = 0.0, size = 0.0, carried = ((double)args->head_dim + 1) * TINY;
        for (size_t d = 0; d < args->head_dim; d++) {
            const double kv = k[j * args->head_dim + d], ke = dk[j * args->head_dim + d];
            s += q[d] * kv;
            size += (fabs(q[d]) + dq[d]) * (fabs(kv) + ke);
            carried += (fabs(q[d]) + dq[d]) * ke + dq[d] * fabs(kv);
        }
        row->z[j] = s * c;
        row->moved[j] = fabs(c) * (rounding * size + carried) + 2.01 * UNIT * fabs(s * c);
        if (args->softcap > 0.0f) {
            row->moved[j] = fabs(c) * (rounding * size + carried);
            row->z[j] = cap_score((double)args->softcap, scale_of(args), s, &row->moved[j]);
        }
        if (args->slopes)
            add_score((double)args->slopes[h] * ((double)j - row->position) * LOG2E, &row->z[j], &row->moved[j]);
        if (args->mask.type != HEED_MASK_NONE) {
            size_t at = b * args->mask.batch_stride + h * args->mask.head_stride + i * args->mask.row_stride + j;
            int boolean = args->mask.type == HEED_MASK_BOOLEAN;
            double mask = boolean ? 0.0 : (double)((const float *)args->mask.data)[at];
            add_score(mask * LOG2E, &row->z[j], &row->moved[j]);
        }
    }
    row->z[row->keys] = args->sinks ? (double)args->sinks[h] * LOG2E : -INFINITY;
    row->moved[row->keys] = args->sinks ? 2.3 * UNIT * fabs(row->z[row->keys]) : 0.0;
}

/* A key's weight is 2^t, t = z - r_b: u |t| and the error e of 2^t. It is then scaled with its block:
 * in each fold by a factor with error e whose exponent r - r' rounds (the r - r' of all folds sum to
 * r_last - r_b), and two roundings. Both sums carry the same factors, so that what counts is how far
 * weights of different keys drift apart. */
static void weigh_row(struct attention_row *row)
{
    double max = -INFINITY, sum = 0.0, most_moved = 0.0;
    size_t sink = row->keys;
    row->blocks = 0.0;
    for (size_t j = 0; j <= sink; j++) {
        max = fmax(max, row->z[j]);
        if (row->z[j] != -INFINITY)
            most_moved = fmax(most_moved, row->moved[j]);
    }
    for (size_t j = 0; j <= sink; j++)
        sum += exp2(row->z[j] - max);
    double *block_max = zeros(row->keys / HEED_KEY_BLOCK + 1);
    for (size_t j = 0; j < row->keys; j++) {
        double *m = &block_max[j / HEED_KEY_BLOCK];
        *m = j % HEED_KEY_BLOCK == 0 ? row->z[j] : fmax(*m, row->z[j]);
    }
    for (size_t j = 0; j < row->keys; j += HEED_KEY_BLOCK)
        row->blocks += block_max[j / HEED_KEY_BLOCK] != -INFINITY;
    row->blocks += row->z[sink] != -INFINITY;
    row->mean_epsilon = 0.0;
    for (size_t j = 0; j <= sink; j++) {
        row->weight[j] = row->epsilon[j] = 0.0;
        if (row->z[j] == -INFINITY)
            continue;
        double reference = j == sink ? row->z[j] : block_max[j / HEED_KEY_BLOCK], slack = 2.0 * most_moved;
        double exponent = row->moved[j] + UNIT * (reference - row->z[j] + slack) + UNIT * (max - reference + slack);
        row->weight[j] = exp2(row->z[j] - max) / sum;
        row->epsilon[j] = expm1(SECOND_ORDER * (LN2 * exponent + (row->blocks + 1.0) * exp2_error));
        if (row->weight[j] > 0.0)
            row->mean_epsilon += row->weight[j] * row->epsilon[j];
    }
    /* ln(2^r l): what l carries, its additions and folds, an ulp of its logarithm and two roundings. */
    size_t block = row->keys < HEED_KEY_BLOCK ? row->keys : HEED_KEY_BLOCK;
    row->log_sum = row->blocks > 0.0 ? max / LOG2E + log(sum) : -INFINITY;
    row->log_sum_error = row->blocks > 0.0 ? SECOND_ORDER * (row->mean_epsilon / (1.0 - row->mean_epsilon) +
                                                             gamma_of(reduction_depth(block) + 2.0 * row->blocks + 1) +
                                                             4.0 * UNIT * log(sum) + UNIT * fabs(row->log_sum)) +
                                                 (double)row->keys * DROPPED
                                           : 0.0;
}

/* With weights w (1 + epsilon): |out' - out| <= sum w epsilon |v - out| / (1 - mean epsilon). The sums
 * add g(keys of a block + 2 folds) of sum w |v| and g(depth + 2 folds) of |out|, the reciprocal and the last
 * product 2 u. A weight or factor below 2^-100 is dropped, perhaps once of each kind. */
static void mix_values(const struct attention_row *row, size_t dim, const double *v, const double *dv, double *out,
                       double *error)
{
    size_t block = row->keys < HEED_KEY_BLOCK ? row->keys : HEED_KEY_BLOCK;
    double folds = 2.0 * row->blocks;
    for (size_t d = 0; d < dim; d++) {
        double drift = 0.0, size = 0.0, carried = 0.0, dropped = 0.0;
        out[d] = error[d] = 0.0;
        for (size_t j = 0; j < row->keys; j++)
            if (row->weight[j] > 0.0)
                out[d] += row->weight[j] * v[j * dim + d];
        for (size_t j = 0; j <= row->keys; j++) {
            if (row->z[j] == -INFINITY)
                continue;
            double value = j < row->keys ? v[j * dim + d] : 0.0, moved = j < row->keys ? dv[j * dim + d] : 0.0;
            if (row->weight[j] > 0.0) {
                drift += row->weight[j] * row->epsilon[j] * fabs(value - out[d]);
                size += row->weight[j] * (fabs(value) + moved);
                carried += row->weight[j] * moved;
            }
            dropped += DROPPED * (fabs(value) + fabs(out[d])) + TINY;
        }
        if (row->blocks > 0.0)
            error[d] = SECOND_ORDER * (drift / (1.0 - row->mean_epsilon) + gamma_of((double)block + folds + 1) * size +
                                       (gamma_of(reduction_depth(block) + folds + 1) + 2.0 * UNIT) * fabs(out[d]) +
                                       carried * (1.0 + row->mean_epsilon)) +
                       dropped;
    }
}

/* The map scales each weight once by 2^(r_b - r) and once by 1 / l: nothing cancels. */
static void map_row(const struct attention_row *row, size_t cols, double *map, double *error)
{
    size_t block = row->keys < HEED_KEY_BLOCK ? row->keys : HEED_KEY_BLOCK;
    double common = row->mean_epsilon / (1.0 - row->mean_epsilon) +
                    gamma_of(reduction_depth(block) + 2.0 * row->blocks + 1) + 3.0 * UNIT;
    for (size_t j = 0; j < cols; j++) {
        map[j] = error[j] = 0.0;
        if (j >= row->keys || row->z[j] == -INFINITY)
            continue;
        map[j] = row->weight[j];
        error[j] = SECOND_ORDER * map[j] * (row->epsilon[j] + common) + DROPPED;
    }
}

struct inexact reference_attention(const heed_attention_args *args, struct inexact q, struct inexact k,
                                   struct inexact v, struct inexact *map, struct inexact *log_sum)
{
    size_t group = args->n_kv_heads ? args->n_heads / args->n_kv_heads : 1;
    struct inexact out = inexact_new(args->batch * args->n_heads * args->seq_q * args->value_dim);
    size_t slots = args->seq_kv + 1;
    struct attention_row row = {
        .z = zeros(slots), .moved = zeros(slots), .weight = zeros(slots), .epsilon = zeros(slots)};
    if (log_sum)
        *log_sum = inexact_new(args->batch * args->n_heads * args->seq_q);
    if (map)
        *map = inexact_new(args->batch * args->n_heads * args->seq_q * args->seq_kv);
    for (size_t b = 0; b < args->batch; b++) {
        size_t queries = args->q_offsets ? args->q_offsets[b + 1] - args->q_offsets[b] : args->seq_q;
        row.keys = args->kv_offsets ? args->kv_offsets[b + 1] - args->kv_offsets[b] : args->seq_kv;
        for (size_t h = 0; h < args->n_heads; h++)
            for (size_t i = 0; i < queries; i++) {
                size_t at = (b * args->n_heads + h) * args->seq_q + i;
                size_t kv = (b * args->n_kv_heads + h / group) * args->seq_kv;
                row.position = position_of(args, b, i, queries, row.keys);
                score_row(args, b, h, i, q.value + at * args->head_dim, q.error + at * args->head_dim,
                          k.value + kv * args->head_dim, k.error + kv * args->head_dim, &row);
                weigh_row(&row);
                if (log_sum) {
                    log_sum->value[at] = row.log_sum;
                    log_sum->error[at] = row.log_sum_error;
                }
                mix_values(&row, args->value_dim, v.value + kv * args->value_dim, v.error + kv * args->value_dim,
                           out.value + at * args->value_dim, out.error + at * args->value_dim);
                if (map)
                    map_row(&row, args->seq_kv, map->value + at * args->seq_kv, map->error + at * args->seq_kv);
            }
    }
    return out;
}

/* Elements that a tensor of heads spans. */
static size_t span_of(const heed_heads *x, size_t batch, size_t heads, size_t seq, size_t dim, const size_t *offsets)
{
    size_t rows = offsets ? offsets[batch] : seq;
    if (rows == 0 || heads == 0 || dim == 0 || batch == 0)
        return 0;
    return (offsets ? 0 : (batch - 1) * x->batch_stride) + (heads - 1) * x->head_stride + (rows - 1) * x->row_stride +
           dim;
}

static struct inexact dense_heads(size_t batch, size_t heads, size_t seq, size_t dim, const heed_heads *x,
                                  const size_t *offsets)
{
    size_t n = span_of(x, batch, heads, seq, dim, offsets);
    return inexact_heads(batch, heads, seq, dim, inexact_rows(1, n, x->data, n), x, offsets);
}

struct inexact reference_attention_of(const heed_attention_args *args, struct inexact *map, struct inexact *log_sum)
{
    struct inexact q = dense_heads(args->batch, args->n_heads, args->seq_q, args->head_dim, &args->q, args->q_offsets);
    struct inexact k =
        dense_heads(args->batch, args->n_kv_heads, args->seq_kv, args->head_dim, &args->k, args->kv_offsets);
    struct inexact v =
        dense_heads(args->batch, args->n_kv_heads, args->seq_kv, args->value_dim, &args->v, args->kv_offsets);
    return reference_attention(args, q, k, v, map, log_sum);
}

/* ---- layers ---- */

static const struct inexact nothing = {NULL, NULL};

/* Dense heads back to rows [tokens][heads * dim]. */
static struct inexact concat_heads(const heed_attention_args *args, size_t tokens, struct inexact heads)
{
    size_t cols = args->n_heads * args->value_dim;
    struct inexact rows = inexact_new(tokens * cols);
    for (size_t b = 0; b < args->batch; b++) {
        size_t first = args->q_offsets ? args->q_offsets[b] : b * args->seq_q;
        size_t n = args->q_offsets ? args->q_offsets[b + 1] - first : args->seq_q;
        for (size_t h = 0; h < args->n_heads; h++)
            for (size_t i = 0; i < n; i++)
                for (size_t d = 0; d < args->value_dim; d++) {
                    size_t from = ((b * args->n_heads + h) * args->seq_q + i) * args->value_dim + d;
                    size_t to = (first + i) * cols + h * args->value_dim + d;
                    rows.value[to] = heads.value[from];
                    rows.error[to] = heads.error[from];
                }
    }
    return rows;
}

void reference_rotate(const heed_rotary_tables *tables, size_t row, struct inexact x, size_t at)
{
    size_t half = tables->dims / 2;
    for (size_t j = 0; j < half; j++) {
        int interleaved = tables->pairs == HEED_ROTARY_INTERLEAVED;
        size_t p = at + (interleaved ? 2 * j : j), q = interleaved ? p + 1 : p + half;
        double c = (double)tables->cosine[row * tables->ld_cosine + j];
        double s = (double)tables->sine[row * tables->ld_sine + j];
        double u = x.value[p], v = x.value[q], du = x.error[p], dv = x.error[q];
        x.value[p] = u * c - v * s;
        x.value[q] = v * c + u * s;
        x.error[p] = fabs(c) * du + fabs(s) * dv + gamma_of(2) * (fabs(c) * (fabs(u) + du) + fabs(s) * (fabs(v) + dv));
        x.error[q] = fabs(c) * dv + fabs(s) * du + gamma_of(2) * (fabs(c) * (fabs(v) + dv) + fabs(s) * (fabs(u) + du));
    }
}

/* Projected heads of one of the sides of attention: rows of sequences, and what is done to their heads. */
struct side {
    size_t n_heads, head_dim, seq;
    const size_t *offsets;
    const float *w, *bias;
    const float *norm; /* NULL: none */
    const heed_rotary_tables *rotary;
    const int32_t *ids; /* NULL: counted in each sequence */
};

static void rotate_side(const struct side *side, size_t batch, struct inexact rows)
{
    for (size_t b = 0; b < batch; b++) {
        size_t first = side->offsets ? side->offsets[b] : b * side->seq;
        size_t n = side->offsets ? side->offsets[b + 1] - first : side->seq;
        for (size_t i = 0; i < n; i++)
            for (size_t h = 0; h < side->n_heads; h++)
                reference_rotate(side->rotary, side->ids ? (size_t)side->ids[first + i] : i, rows,
                                 ((first + i) * side->n_heads + h) * side->head_dim);
    }
}

static struct inexact project_heads(const struct layer_problem *p, size_t batch, const struct side *side,
                                    struct inexact x)
{
    size_t cols = side->n_heads * side->head_dim, tokens = side->offsets ? side->offsets[batch] : batch * side->seq;
    const heed_heads strides = {NULL, side->seq * cols, side->head_dim, cols};
    struct inexact rows =
        reference_linear(tokens, p->d_model, cols, x, side->w, side->bias, HEED_ACTIVATION_NONE, nothing);
    if (side->norm)
        rows = reference_rmsnorm(tokens * side->n_heads, side->head_dim, rows, side->norm, p->norm_eps,
                                 inexact_new(tokens * side->n_heads));
    if (side->rotary)
        rotate_side(side, batch, rows);
    return inexact_heads(batch, side->n_heads, side->seq, side->head_dim, rows, &strides, side->offsets);
}

struct inexact reference_mha(const struct layer_problem *p, const heed_mha_args *args, struct inexact x,
                             struct inexact memory, struct inexact residual)
{
    int self = memory.value == NULL;
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.batch = args->batch;
    a.n_heads = p->n_heads;
    a.n_kv_heads = p->n_kv_heads;
    a.seq_q = args->seq_q;
    a.seq_kv = self ? args->seq_q : args->seq_kv;
    a.head_dim = p->head_dim;
    a.value_dim = p->value_dim;
    a.q_offsets = args->offsets;
    a.kv_offsets = self ? args->offsets : args->memory_offsets;
    a.kv_lengths = args->kv_lengths;
    a.causal = args->causal;
    a.mask = args->mask;
    a.scale = args->scale;
    a.scale_value = args->scale_value;
    a.window_left = args->window_left;
    a.window_right = args->window_right;
    a.softcap = args->softcap;
    a.slopes = args->slopes;
    a.sinks = args->sinks;
    size_t tokens = a.q_offsets ? a.q_offsets[a.batch] : a.batch * a.seq_q;
    const heed_rotary_tables *rotary = self && p->rotary.dims ? &p->rotary : NULL;
    const struct side sides[] = {
        {p->n_heads, p->head_dim, a.seq_q, a.q_offsets, p->query, p->query_bias, p->query_norm, rotary,
         args->position_ids},
        {p->n_kv_heads, p->head_dim, a.seq_kv, a.kv_offsets, p->key, p->key_bias, p->key_norm, rotary,
         args->position_ids},
        {p->n_kv_heads, p->value_dim, a.seq_kv, a.kv_offsets, p->value, p->value_bias, NULL, NULL, NULL},
    };
    struct inexact q = project_heads(p, a.batch, &sides[0], x);
    struct inexact k = project_heads(p, a.batch, &sides[1], self ? x : memory);
    struct inexact v = project_heads(p, a.batch, &sides[2], self ? x : memory);
    struct inexact concat = concat_heads(&a, tokens, reference_attention(&a, q, k, v, NULL, NULL));
    return reference_linear(tokens, p->n_heads * p->value_dim, p->d_model, concat, p->output, p->output_bias,
                            HEED_ACTIVATION_NONE, residual);
}

struct inexact reference_ffn(const struct layer_problem *p, size_t m, struct inexact x, struct inexact residual)
{
    struct inexact hidden = reference_linear(m, p->d_model, p->d_ff, x, p->up, p->up_bias, p->activation, nothing);
    return reference_linear(m, p->d_ff, p->d_model, hidden, p->down, p->down_bias, HEED_ACTIVATION_NONE, residual);
}

static struct inexact normalize(const struct layer_problem *p, size_t tokens, struct inexact x, const float *scale,
                                const float *shift)
{
    return p->norm == HEED_NORM_RMSNORM ? reference_rmsnorm(tokens, p->d_model, x, scale, p->eps, inexact_new(tokens))
                                        : reference_layernorm(tokens, p->d_model, x, scale, shift, p->eps);
}

static struct inexact pre_norm_layer(const struct layer_problem *p, const heed_mha_args *args,
                                     const struct cross_problem *cross, size_t tokens, struct inexact x)
{
    x = reference_mha(p, args, normalize(p, tokens, x, p->norm1_scale, p->norm1_shift), nothing, x);
    if (cross) {
        struct inexact queries = normalize(p, tokens, x, cross->weights->norm1_scale, cross->weights->norm1_shift);
        x = reference_mha(cross->weights, &cross->args, queries, cross->memory, x);
    }
    return reference_ffn(p, tokens, normalize(p, tokens, x, p->norm2_scale, p->norm2_shift), x);
}

static struct inexact post_norm_layer(const struct layer_problem *p, const heed_mha_args *args,
                                      const struct cross_problem *cross, size_t tokens, struct inexact x)
{
    x = normalize(p, tokens, reference_mha(p, args, x, nothing, x), p->norm1_scale, p->norm1_shift);
    if (cross) {
        x = reference_mha(cross->weights, &cross->args, x, cross->memory, x);
        x = normalize(p, tokens, x, cross->weights->norm1_scale, cross->weights->norm1_shift);
    }
    return normalize(p, tokens, reference_ffn(p, tokens, x, x), p->norm2_scale, p->norm2_shift);
}

struct inexact reference_layer(const struct layer_problem *p, const heed_mha_args *args,
                               const struct cross_problem *cross, size_t tokens, struct inexact x)
{
    return p->order == HEED_NORM_PRE ? pre_norm_layer(p, args, cross, tokens, x)
                                     : post_norm_layer(p, args, cross, tokens, x);
}

static const float *random_matrix(size_t in, size_t out)
{
    float *w = buffer(in * out, 0), limit = 1.7f / sqrtf((float)in);
    fill_uniform(w, in * out, -limit, limit);
    return w;
}

static const float *random_vector(size_t n, float low, float high)
{
    float *x = buffer(n, 0);
    fill_uniform(x, n, low, high);
    return x;
}

void random_layer(struct layer_problem *p)
{
    size_t q = p->n_heads * p->head_dim, k = p->n_kv_heads * p->head_dim, v = p->n_kv_heads * p->value_dim;
    p->query = random_matrix(p->d_model, q);
    p->key = random_matrix(p->d_model, k);
    p->value = random_matrix(p->d_model, v);
    p->output = random_matrix(p->n_heads * p->value_dim, p->d_model);
    p->up = random_matrix(p->d_model, p->d_ff);
    p->down = random_matrix(p->d_ff, p->d_model);
    p->query_bias = random_vector(q, -0.5f, 0.5f);
    p->key_bias = random_vector(k, -0.5f, 0.5f);
    p->value_bias = random_vector(v, -0.5f, 0.5f);
    p->output_bias = random_vector(p->d_model, -0.5f, 0.5f);
    p->up_bias = random_vector(p->d_ff, -0.5f, 0.5f);
    p->down_bias = random_vector(p->d_model, -0.5f, 0.5f);
    p->norm1_scale = random_vector(p->d_model, 0.5f, 1.5f);
    p->norm1_shift = random_vector(p->d_model, -0.5f, 0.5f);
    p->norm2_scale = random_vector(p->d_model, 0.5f, 1.5f);
    p->norm2_shift = random_vector(p->d_model, -0.5f, 0.5f);
    if (p->norm == HEED_NORM_RMSNORM) {
        p->norm1_shift = p->norm2_shift = NULL;
        p->query_norm = random_vector(p->head_dim, 0.5f, 1.5f);
        p->key_norm = random_vector(p->head_dim, 0.5f, 1.5f);
    }
    if (p->rotary.dims) {
        p->rotary.cosine = random_vector(ROTARY_ROWS * p->rotary.dims, -1.0f, 1.0f);
        p->rotary.sine = random_vector(ROTARY_ROWS * p->rotary.dims, -1.0f, 1.0f);
        p->rotary.ld_cosine = p->rotary.ld_sine = p->rotary.dims;
        p->rotary.positions = ROTARY_ROWS;
    }
}

void pack_layer(struct packed_layer *packed_layer, const struct layer_problem *p)
{
    const heed_mha_weights no_attention = HEED_MHA_WEIGHTS_INIT;
    const heed_ffn_weights no_ffn = HEED_FFN_WEIGHTS_INIT;
    const heed_encoder_layer no_layer = HEED_ENCODER_LAYER_INIT;
    *packed_layer = (struct packed_layer){no_attention, no_ffn, no_layer};
    heed_mha_weights *a = &packed_layer->attention;
    a->n_heads = p->n_heads;
    a->n_kv_heads = p->n_kv_heads;
    a->head_dim = p->head_dim;
    a->value_dim = p->value_dim;
    a->query = packed(p->d_model, p->n_heads * p->head_dim, p->query);
    a->key = packed(p->d_model, p->n_kv_heads * p->head_dim, p->key);
    a->value = packed(p->d_model, p->n_kv_heads * p->value_dim, p->value);
    a->output = packed(p->n_heads * p->value_dim, p->d_model, p->output);
    a->query_bias = p->query_bias;
    a->key_bias = p->key_bias;
    a->value_bias = p->value_bias;
    a->output_bias = p->output_bias;
    a->query_norm = p->query_norm;
    a->key_norm = p->key_norm;
    a->norm_eps = p->norm_eps;
    heed_ffn_weights *f = &packed_layer->ffn;
    f->up = packed(p->d_model, p->d_ff, p->up);
    f->down = packed(p->d_ff, p->d_model, p->down);
    f->up_bias = p->up_bias;
    f->down_bias = p->down_bias;
    f->activation = p->activation;
    heed_encoder_layer *l = &packed_layer->layer;
    l->attention = a;
    l->ffn = f;
    l->norm1_scale = p->norm1_scale;
    l->norm1_shift = p->norm1_shift;
    l->norm2_scale = p->norm2_scale;
    l->norm2_shift = p->norm2_shift;
    l->eps = p->eps;
    l->order = p->order;
    l->norm = p->norm;
    l->rotary = p->rotary;
}
