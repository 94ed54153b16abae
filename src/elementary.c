/* SPDX-License-Identifier: MIT
 * log, exp, sin and cos in double, from additions, multiplications and divisions only: positions
 * enter the golden hashes, and libms differ. Errors are below 2^-51 relative (log, exp) or absolute
 * (sin, cos); all series are Taylor's, cut where the next term is below 2^-56.
 */
#include "internal.h"

#include <string.h>

#define LN2_HIGH 0x1.62e42fefa0000p-1 /* 38 bits: exact times any exponent */
#define LN2_LOW 0x1.cf79abc9e3b3ap-40

static double power_of_two(int n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x = m 2^n with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh((m - 1) / (m + 1)). */
double heed_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int n = (int)(bits >> 52) - 1023;
    double m = x * power_of_two(-n / 2) * power_of_two(-n + n / 2);
    if (m >= 0x1.6a09e667f3bcdp0) {
        m *= 0.5;
        n++;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s, series = 0.0;
    for (int k = 23; k >= 3; k -= 2)
        series = (series + 1.0 / k) * z;
    return n * LN2_HIGH + (2.0 * s + (2.0 * s * series + n * LN2_LOW));
}

double heed_exp(double x)
{
    double magic = 0x1.8p52, n = x * 0x1.71547652b82fep0 + magic - magic;
    double r = x - n * LN2_HIGH - n * LN2_LOW, series = 1.0;
    for (int k = 14; k >= 1; k--)
        series = 1.0 + series * r / k;
    int half = (int)n / 2;
    return series * power_of_two(half) * power_of_two((int)n - half);
}

/* Series of sin (first = 1) or cos (first = 0) on |x| <= pi/4. */
static double series_from(double x, int first)
{
    double z = x * x, series = 1.0;
    for (int k = 18 + first; k > 1; k -= 2)
        series = 1.0 - series * z / (k * (k - 1));
    return first ? x * series : series;
}

/* pi/2 in pieces of 22 bits, so that a multiple up to 2^31 of each is exact. */
void heed_sincos(double x, double *sine, double *cosine)
{
    double magic = 0x1.8p52, n = x * 0x1.45f306dc9c883p-1 + magic - magic;
    double r = x - n * 0x1.921fbp0;
    r -= n * 0x1.5110bp-22;
    r -= n * 0x1.184698p-44;
    r -= n * 0x1.3198a2e037073p-69;
    double s = series_from(r, 1), c = series_from(r, 0);
    unsigned quadrant = (unsigned)((int64_t)n & 3);
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
}

/* The compiler's own instruction: IEEE 754 rounds the root correctly. */
double heed_root(double x)
{
    return __builtin_sqrt(x);
}
