/* Expands the rows of a settings table into qkv_setting rows; see base/settings.h. Needs
 * SETTINGS_OWNER, the struct. */
#define SETTINGS_ROW(kind, field, ...)                                                             \
    {.name = #field,                                                                               \
     .type = QKV_SETTING_##kind,                                                                   \
     .offset = offsetof(SETTINGS_OWNER, field),                                                    \
     __VA_ARGS__},
#define INT(field, standard_, min_, max_, help_)                                                   \
    SETTINGS_ROW(INT, field, .standard = standard_, .min = min_, .max = max_, .help = help_)
#define REAL(field, standard_, min_, max_, help_)                                                  \
    SETTINGS_ROW(REAL, field, .standard = standard_, .min = min_, .max = max_, .help = help_)
#define BOOL(field, standard_, help_)                                                              \
    SETTINGS_ROW(BOOL, field, .standard = standard_, .help = help_)
#define CHOICE(field, list_, standard_, help_)                                                     \
    SETTINGS_ROW(CHOICE, field, .standard = standard_, .choices = list_, .help = help_)
#define TEXT(field, standard_, help_) SETTINGS_ROW(TEXT, field, .text = standard_, .help = help_)
