/* Cross-validation: the rows in K parts, K trainings, each measured on the part that it has not
 * seen. The mean is what the same command without --folds is worth on rows to come (with 1/K more of
 * them to learn from, if anything better); the interval that of Student's t over the K figures,
 * which takes them for independent. They are not quite (any two trainings share rows), so it is a
 * little too narrow. */
#include "run/trials.h"

#include <math.h>

/* The 97.5 % point of Student's t for n degrees of freedom, by its expansion around the normal's
 * (Abramowitz and Stegun 26.7.5); off by less than 1 % from 3 on, where the table ends. */
static double student(double n) {
    static const double few[] = {12.706, 4.303, 3.182};
    const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z;
    if (n < 4) return few[(int)n - 1];
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n);
}

static void sum_up(qkv_trials *out) {
    double sum = 0, squares = 0;
    const double n = (double)out->n;
    for (size_t i = 0; i < out->n; i++)
        sum += out->by_right ? out->trials[i].right : out->trials[i].loss;
    out->mean = sum / n;
    for (size_t i = 0; i < out->n; i++) {
        const double off = (out->by_right ? out->trials[i].right : out->trials[i].loss) - out->mean;
        squares += off * off;
    }
    out->folds = true;
    out->half_width = student(n - 1) * sqrt(squares / (n - 1) / n);
}

static qkv_status run_folds(qkv_series_of_runs *t, int folds) {
    for (int i = (int)t->done.n; i < folds; i++) {
        char what[32];
        snprintf(what, sizeof what, "fold %d", i + 1);
        snprintf(t->label, sizeof t->label, "fold %d of %d", i + 1, folds);
        t->to_come = folds - 1 - i;
        t->quiet = i > 0;
        const qkv_variation v = {.what = what, .part = i, .parts = folds};
        QKV_TRY(qkv_trials_run(t, &v, false));
        const qkv_trial_entry *e = &t->done.at[i];
        if (i == 0 && e->seconds * t->to_come >= 60)
            QKV_TRY(qkv_trials_note(t, "time      about %.1f minutes more",
                                    e->seconds * t->to_come / 60));
        if (t->task->counts_right)
            QKV_TRY(qkv_trials_note(t, "%-9s %.2f %% of %lld right, loss %.4f, %.0f seconds", what,
                                    100 * e->right, (long long)e->targets, e->loss, e->seconds));
        else
            QKV_TRY(qkv_trials_note(t, "%-9s loss %.4f over %lld, %.0f seconds", what, e->loss,
                                    (long long)e->targets, e->seconds));
    }
    return QKV_OK;
}

qkv_status qkv_cross_validate(const qkv_train_request *request, int folds, qkv_trials *out) {
    qkv_series_of_runs t;
    *out = (qkv_trials){0};
    if (folds < 2 || folds > 100)
        return qkv_fail(QKV_USAGE, "folds: %d; a cross-validation has 2 to 100 of them", folds);
    qkv_status status = qkv_trials_open(&t, request, QKV_PART_FOLDS, folds);
    if (status == QKV_OK) status = run_folds(&t, folds);
    if (status == QKV_OK) status = qkv_trials_give(&t, out);
    if (status == QKV_OK) sum_up(out);
    qkv_trials_close(&t);
    return status;
}
