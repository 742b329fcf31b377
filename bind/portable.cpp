// Of wheels: the C++ library of RHEL 9 will do, which is older than the compiler's. All that they
// need and it lacks is a newer version of this function, which promises to throw nothing; the older
// one does the same.
#if defined(__linux__) && defined(__x86_64__)
__asm__(
    ".symver wait_of_old,_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

extern "C" void wait_of_old(void* condition, void* lock);

__attribute__((visibility("hidden"))) void wait_here(void* condition, void* lock) __asm__(
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

void wait_here(void* condition, void* lock) { wait_of_old(condition, lock); }
#endif
