/* SPDX-License-Identifier: MIT
 * Reading JSON files and the values in them. */
#include "config.h"

#include "diag.h"
#include "file.h"
#include "json.h"
#include "vocab.h"

#include <stdlib.h>
#include <string.h>

static bool out_of_memory; /* whether cJSON, which does not say why it fails, has had a NULL */

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        out_of_memory = true;
    return memory;
}

/* Whether there is a NUL, as such or as an escape; *at receives its place. */
static bool find_nul(const char *bytes, size_t length, size_t *at)
{
    static const char escaped[] = "\\u0000";
    for (*at = 0; *at < length; ++*at) {
        const char *byte = bytes + *at;
        bool escape = *byte == '\\';
        if (!*byte || (escape && length - *at >= sizeof escaped - 1 && memcmp(byte, escaped, sizeof escaped - 1) == 0))
            return true;
        *at += escape;
    }
    return false;
}

/* Readers differ in which of two members of one name they take: neither is. */
static bool members_differ(const char *path, const cJSON *object)
{
    struct vocab names = {0};
    enum vocab_status status = VOCAB_PUT;
    const cJSON *member = object->child;
    for (; member && status == VOCAB_PUT; member = member->next) {
        size_t length = strlen(member->string);
        if (vocab_find(&names, "", 0, member->string, length) >= 0) {
            diag_print("%s: \"%s\" is given twice", path, member->string);
            break;
        }
        status = vocab_put(&names, member->string, length, 0);
        if (status == VOCAB_CROWDED)
            diag_print("%s: \"%s\": too many names have the same hash", path, member->string);
    }
    vocab_free(&names);
    return !member && status == VOCAB_PUT;
}

/* cJSON nests a thousand values at the most. */
static bool all_members_differ(const char *path, const cJSON *value)
{
    for (const cJSON *part = value->child; part; part = part->next)
        if (!all_members_differ(path, part))
            return false;
    return !cJSON_IsObject(value) || members_differ(path, value);
}

cJSON *json_parse(const char *path, const char *bytes, size_t length)
{
    cJSON_Hooks hooks = {allocate, free};
    const char *end = NULL;
    size_t at;
    /* It would end a string of cJSON, and "cat\u0000x" be "cat". */
    if (find_nul(bytes, length, &at)) {
        diag_print("%s: NUL near byte %zu is not supported", path, at);
        return NULL;
    }
    cJSON_InitHooks(&hooks);
    out_of_memory = false;
    cJSON *json = cJSON_ParseWithLengthOpts(bytes, length + 1, &end, true);
    if (!json && out_of_memory)
        diag_print("%s: out of memory", path);
    else if (!json)
        diag_print("%s: not valid JSON near byte %zu", path, end ? (size_t)(end - bytes) : 0);
    if (!json || all_members_differ(path, json))
        return json;
    cJSON_Delete(json);
    return NULL;
}

static bool is_of_type(const cJSON *value, int type)
{
    return type == cJSON_Array ? cJSON_IsArray(value) : cJSON_IsObject(value);
}

static const char *kind_of_type(int type)
{
    return type == cJSON_Array ? "an array" : "an object";
}

bool json_read(const char *path, int type, bool optional, cJSON **json)
{
    struct text content = {0};
    bool missing = false;
    *json = NULL;
    bool done = file_read(path, optional ? &missing : NULL, &content);
    if (done && !missing) {
        done = text_append(&content, "", 1);
        if (done)
            *json = json_parse(path, content.bytes, content.length - 1);
        done = *json != NULL;
    }
    text_free(&content);
    if (*json && !is_of_type(*json, type)) {
        diag_print("%s: not %s", path, kind_of_type(type));
        cJSON_Delete(*json);
        *json = NULL;
        return false;
    }
    return done;
}

const cJSON *json_member(const cJSON *object, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(member) ? NULL : member;
}

bool json_whole(const cJSON *value, size_t max, size_t *number)
{
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0 && value->valuedouble <= (double)max))
        return false;
    size_t whole = (size_t)value->valuedouble;
    if ((double)whole != value->valuedouble)
        return false;
    *number = whole;
    return true;
}

static bool wrong(const char *path, const char *name, const char *kind)
{
    diag_print("%s: %s is not %s", path, name, kind);
    return false;
}

bool json_get_bool(const char *path, const cJSON *object, const char *name, bool *value)
{
    const cJSON *member = json_member(object, name);
    if (member && !cJSON_IsBool(member))
        return wrong(path, name, "true or false");
    if (member)
        *value = cJSON_IsTrue(member);
    return true;
}

bool json_get_size(const char *path, const cJSON *object, const char *name, size_t max, size_t *value)
{
    const cJSON *member = json_member(object, name);
    if (member && !json_whole(member, max, value)) {
        diag_print("%s: %s is not a whole number from 0 to %zu", path, name, max);
        return false;
    }
    return true;
}

bool json_get_string(const char *path, const cJSON *object, const char *name, const char **value)
{
    const cJSON *member = json_member(object, name);
    if (member && !cJSON_IsString(member))
        return wrong(path, name, "a string");
    if (member)
        *value = member->valuestring;
    return true;
}

bool json_get_list(const char *path, const cJSON *object, const char *name, int type, const cJSON **value)
{
    const cJSON *member = json_member(object, name);
    if (member && !is_of_type(member, type))
        return wrong(path, name, kind_of_type(type));
    if (member)
        *value = member;
    return true;
}
