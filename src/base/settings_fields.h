/* Expands the rows of a settings table into struct fields; see base/settings.h. No include guard:
 * used many times. */
#define INT(name, standard, min, max, help)  int64_t name;
#define REAL(name, standard, min, max, help) double name;
#define BOOL(name, standard, help)           bool name;
#define CHOICE(name, list, standard, help)   int name;
#define TEXT(name, standard, help)           char name[QKV_SETTING_TEXT_MAX];
