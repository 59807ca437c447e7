/* Forgets the row macros of a settings table; see base/settings.h. */
#undef INT
#undef REAL
#undef BOOL
#undef CHOICE
#undef TEXT
#undef SETTINGS_ROW
#undef SETTINGS_OWNER
