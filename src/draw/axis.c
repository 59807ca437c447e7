#include "draw/axis.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

qkv_axis qkv_axis_make(double low, double high, int wanted, bool round_out) {
    if (!(low <= high) || !isfinite(low) || !isfinite(high)) low = 0, high = 1;
    if (high - low < 1e-12 * fmax(1, fabs(high))) { /* one value: some room around it */
        double room = fabs(high) > 0 ? fabs(high) * 0.1 : 1;
        low -= room, high += room;
    }
    if (wanted < 2) wanted = 2;
    double raw = (high - low) / wanted, power = pow(10, floor(log10(raw))), step = power;
    static const double factors[] = {1, 2, 5, 10};
    for (int i = 0; i < 4 && step < raw * 0.999; i++) step = power * factors[i];
    qkv_axis a = {.low = low, .high = high};
    if (round_out) {
        a.low = floor(low / step + 1e-9) * step;
        a.high = ceil(high / step - 1e-9) * step;
    }
    for (double k = ceil(a.low / step - 1e-9);
         k * step <= a.high + step * 1e-9 && a.n < QKV_TICKS_MAX; k++)
        a.tick[a.n++] = k * step;
    a.decimals = step >= 1 ? 0 : (int)fmin(9, ceil(-log10(step) - 1e-9));
    return a;
}

void qkv_axis_label(const qkv_axis *a, double value, char out[32]) {
    double largest = fmax(fabs(a->low), fabs(a->high)), scale = 1;
    const char *unit = "";
    if (largest >= 1e7)
        scale = 1e6, unit = "M";
    else if (largest >= 1e4)
        scale = 1e3, unit = "k";
    /* Rounded to the tick's own decimals, so that 0.30000000000000004 reads 0.3. */
    double unit_ten = pow(10, scale > 1 ? 2 : a->decimals),
           shown = round(value / scale * unit_ten) / unit_ten;
    qkv_number_print(shown == 0 ? 0 : shown, 10, out); /* at most 17 bytes */
    if (shown != 0) strcat(out, unit);
}
