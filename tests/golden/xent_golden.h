/* Written by make_xent_golden.py. */
enum { XENT_PAIRS = 3, XENT_V = 7 };
static const double xent_smoothing = 0.1, xent_agree = 0.8, xent_loss = 31.0651352671;
static const int32_t xent_targets[] = {3, 0, 6, 3, 0, 6};
static const real xent_grad[] = {
    (real)-0.0751901658, (real)0.0292889939,  (real)0.425803249,   (real)-1.02807021,
    (real)0.0671225582,  (real)0.807908712,   (real)-0.226863138,  (real)-0.833039558,
    (real)0.806271393,   (real)-0.322514969,  (real)0.137502088,   (real)-0.0713023933,
    (real)0.0137922059,  (real)0.269291234,   (real)-0.133333773,  (real)0.0273976853,
    (real)0.406701708,   (real)-0.236696769,  (real)0.0635891285,  (real)0.772222336,
    (real)-0.899880317,  (real)0.216728924,   (real)-0.0290149421, (real)-0.163045645,
    (real)-0.48269355,   (real)-0.0418035346, (real)-0.292205854,  (real)0.792034602,
    (real)-0.943716207,  (real)-0.31152316,   (real)1.24695329,    (real)-0.0692691131,
    (real)0.219020042,   (real)-0.0244566204, (real)-0.117008227,  (real)0.51387805,
    (real)-0.0302854056, (real)-0.175876872,  (real)0.972454102,   (real)-0.0441770729,
    (real)-0.316177742,  (real)-0.91981506,
};
