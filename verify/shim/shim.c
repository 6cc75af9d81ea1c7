/*
 * Entry point: reads the environment and starts the requested functions.
 *
 *   FLOE_SHIM_DIR    the watched directory; it must exist
 *   FLOE_SHIM_FAIL   <kind>:<n>[:sticky], see fault.c
 *   FLOE_SHIM_COUNT  file for the counts of calls, see fault.c
 *   FLOE_SHIM_TRACE  file for the record of changes, see trace.c
 *   FLOE_SHIM_MARKS  file whose writes are recorded as marks, in order
 *
 * verify/src/shim.rs builds the library and sets these.
 */
#include "shim.h"

#include <stdlib.h>

__attribute__((constructor)) static void start(void)
{
    const char *dir = getenv("FLOE_SHIM_DIR");
    const char *fail = getenv("FLOE_SHIM_FAIL");
    const char *count = getenv("FLOE_SHIM_COUNT");
    const char *trace = getenv("FLOE_SHIM_TRACE");
    const char *marks = getenv("FLOE_SHIM_MARKS");
    if (!dir)
        return;
    if (count)
        counts_open(count);
    if (fail)
        fault_parse(fail);
    if (marks)
        marks_open(marks);
    if (trace)
        trace_open(trace);
    files_watch(dir);
    calls_serve_process(sys(SYS_getpid));
    filter_install();
}
