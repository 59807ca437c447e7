/* Made by make_block_golden.py: type, bytes of a block, where its f16 stand (-1: no second), hash. */
#define BLOCKS 64
static const struct {
    qkv_weight_format format;
    int bytes, half[2];
    uint64_t hash;
} block_golden[] = {
    {QKV_WEIGHT_Q4_0, 18, {0, -1}, 0xbf64a43e5af39f3du},
    {QKV_WEIGHT_Q4_1, 20, {0, 2}, 0x14d0e8ddcb7641c3u},
    {QKV_WEIGHT_Q5_0, 22, {0, -1}, 0x2ba64266720f4194u},
    {QKV_WEIGHT_Q5_1, 24, {0, 2}, 0xa98a49b69a1fc8d3u},
    {QKV_WEIGHT_Q8_0, 34, {0, -1}, 0x5045cd04cfc7dc9au},
    {QKV_WEIGHT_Q2_K, 84, {80, 82}, 0x9662c91779c23ebfu},
    {QKV_WEIGHT_Q3_K, 110, {108, -1}, 0x5409d7e1139653eau},
    {QKV_WEIGHT_Q4_K, 144, {0, 2}, 0xe0cb31f4ad683461u},
    {QKV_WEIGHT_Q5_K, 176, {0, 2}, 0x843afbb460896ba6u},
    {QKV_WEIGHT_Q6_K, 210, {208, -1}, 0xa0822d55132d085cu},
    {QKV_WEIGHT_IQ4_NL, 18, {0, -1}, 0x69c263f85222e3b0u},
    {QKV_WEIGHT_IQ4_XS, 136, {0, -1}, 0x8d3587c02404dfc2u},
};
