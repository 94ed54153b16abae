# SPDX-License-Identifier: MIT

# HEED_PROBE_STRICTLY: what makes errors of clang's warnings about flags that it does not know. The user's own flags may
# be such, as those for the linker are to a compiler that only compiles.
AC_DEFUN([HEED_PROBE_STRICTLY],
[heed_save_CFLAGS=$CFLAGS
heed_strictly=
for heed_flag in -Werror -Werror=ignored-optimization-argument; do
  CFLAGS="$heed_save_CFLAGS $heed_flag"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([int heed_probe;])], [heed_strictly=$heed_flag; break])
done
CFLAGS=$heed_save_CFLAGS])

# HEED_APPEND_FLAGS(VARIABLE, FLAGS): appends the flags that the compiler takes.
AC_DEFUN([HEED_APPEND_FLAGS],
[AC_REQUIRE([HEED_PROBE_STRICTLY])
for heed_flag in $2; do
  AC_MSG_CHECKING([whether $CC takes $heed_flag])
  heed_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $$1 $heed_flag $heed_strictly"
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([int heed_probe(void); int heed_probe(void) { return 0; }])],
    [AC_MSG_RESULT([yes])
     AS_VAR_APPEND([$1], [" $heed_flag"])],
    [AC_MSG_RESULT([no])])
  CFLAGS=$heed_save_CFLAGS
done])

# HEED_LINK_FLAG(VARIABLE, FLAG): sets the variable to the flag if the linker takes it.
AC_DEFUN([HEED_LINK_FLAG],
[AC_MSG_CHECKING([whether the linker takes $2])
heed_save_LDFLAGS=$LDFLAGS
LDFLAGS="$LDFLAGS $2"
AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
  [AC_MSG_RESULT([yes])
   $1="$2"],
  [AC_MSG_RESULT([no])
   $1=])
LDFLAGS=$heed_save_LDFLAGS])

# HEED_DEFINE_01(NAME, TEST, DESCRIPTION): a macro and shell variable that is always 0 or 1, so that
# code says #if and -Wundef finds a misspelt name.
AC_DEFUN([HEED_DEFINE_01],
[AS_IF([$2], [$1=1], [$1=0])
AC_DEFINE_UNQUOTED([$1], [$$1], [$3])])

# HEED_TABLE_OPTION(NAME): --disable-NAME.
AC_DEFUN([HEED_TABLE_OPTION],
[AC_ARG_ENABLE([$1], [AS_HELP_STRING([--disable-$1], [leave the $1 table out])], [], [enable_$1=yes])])

# HEED_CHECK_TABLE(NAME, UPPERCASE, APPLIES, FLAGS, PROLOGUE, BODY): decides whether the table can be
# built, by linking real intrinsics with the flags in the order in which make gives them; the user
# may override the flags with UPPERCASE_CFLAGS. A table that cannot be built is left out.
AC_DEFUN([HEED_CHECK_TABLE],
[AC_ARG_VAR([$2_CFLAGS], [flags that build the $1 table])
AS_IF([test "x$$2_CFLAGS" = x], [$2_CFLAGS="$4"])
heed_build=no
AS_IF([test "$3" != yes], [heed_why=],
  [test "x$enable_$1" = xno], [heed_why=" (disabled)"],
  [AC_MSG_CHECKING([whether the $1 table can be built])
   heed_save_CFLAGS=$CFLAGS
   CFLAGS="$$2_CFLAGS $CFLAGS"
   AC_LINK_IFELSE([AC_LANG_PROGRAM([$5], [$6])], [heed_build=yes], [heed_why=" (the compiler cannot build it)"])
   CFLAGS=$heed_save_CFLAGS
   AC_MSG_RESULT([$heed_build])])
HEED_DEFINE_01([HAVE_TABLE_$2], [test $heed_build = yes], [the $1 table is built])
AM_CONDITIONAL([TABLE_$2], [test $heed_build = yes])
AS_IF([test $heed_build = yes], [HEED_TABLES_BUILT="$HEED_TABLES_BUILT $1"],
  [HEED_TABLES_LEFT_OUT="$HEED_TABLES_LEFT_OUT $1$heed_why"])])
