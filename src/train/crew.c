/* The ways are compared by the work that they did in a second since the last decision. */
#include "train/crew.h"

#include <string.h>

enum {
    WARM = 1,  /* steps at the start that count for nothing: memory is touched first */
    LOOK = 3,  /* steps of either way that are compared */
    REST = 32, /* steps until the next look, the first time; twice as many each time */
    REST_MOST = 256
};
static const double ENOUGH = 1.9; /* so many times slower, a look ends after its first step */

void qkv_crew_begin(qkv_crew *c) {
    *c = (qkv_crew){.open = true, .rest = REST, .until = WARM + LOOK};
}

bool qkv_crew_alone(const qkv_crew *c) {
    return c->open && c->one != c->look;
}

static void decide(qkv_crew *c) {
    const bool before = c->one;
    c->one = c->work[1] * c->seconds[0] > c->work[0] * c->seconds[1];
    c->rest = c->one != before ? REST : c->rest < REST_MOST ? 2 * c->rest : REST_MOST;
    c->until = c->rest;
    memset(c->work, 0, sizeof c->work);
    memset(c->seconds, 0, sizeof c->seconds);
}

void qkv_crew_made(qkv_crew *c, double work, double seconds) {
    if (!c->open || c->steps++ < WARM) {
        c->until -= c->open;
        return;
    }
    const int way = qkv_crew_alone(c);
    c->work[way] += work;
    c->seconds[way] += seconds;
    c->until--;
    if (c->look && c->seconds[way] * c->work[!way] > ENOUGH * c->seconds[!way] * c->work[way])
        c->until = 0;
    if (c->until > 0) return;
    if (c->look)
        decide(c);
    else
        c->until = LOOK;
    c->look = !c->look;
}
