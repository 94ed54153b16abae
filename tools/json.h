/* SPDX-License-Identifier: MIT
 * Reading JSON files and the values in them. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses length bytes, which a NUL follows. NULL after a message that names the file. Strings hold no
 * NUL, and no object two members of one name. */
cJSON *json_parse(const char *path, const char *bytes, size_t length);

/* Reads and parses a file that holds a value of that type, cJSON_Object or cJSON_Array. *json is NULL
 * where the file is optional and missing. false after a message. */
bool json_read(const char *path, int type, bool optional, cJSON **json);

/* The member, or NULL if object is NULL or no object, or the member is missing or null. */
const cJSON *json_member(const cJSON *object, const char *name);

/* The largest whole number that can be read: a double holds all up to it and no other reads as it. */
#define JSON_WHOLE_MAX (SIZE_MAX > UINT32_MAX ? SIZE_MAX >> 11 : SIZE_MAX)

/* Whether value is a whole number from 0 to max, which is then in *number. max is at most JSON_WHOLE_MAX. */
bool json_whole(const cJSON *value, size_t max, size_t *number);

/* Each of these leaves *value alone where the member is missing, and returns false, after a message
 * that names the file and the member, where it is of another kind. */
bool json_get_bool(const char *path, const cJSON *object, const char *name, bool *value);
bool json_get_size(const char *path, const cJSON *object, const char *name, size_t max, size_t *value);
bool json_get_string(const char *path, const cJSON *object, const char *name, const char **value);

/* The same of a member of that type, cJSON_Object or cJSON_Array. */
bool json_get_list(const char *path, const cJSON *object, const char *name, int type, const cJSON **value);

#endif
