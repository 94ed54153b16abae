/* SPDX-License-Identifier: MIT
 * Before any header of the C library: copies whose sizes that would check at run time may end the process, which is not
 * the library's to do. It checks sizes before it copies.
 */
#undef _FORTIFY_SOURCE
