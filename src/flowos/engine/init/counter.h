/* The time stamp counter of x86. */
#ifndef FLOWOS_INIT_COUNTER_H
#define FLOWOS_INIT_COUNTER_H

/* Its rate in kHz, to some millionths, seen over 10 ms; 0 on a machine without one. */
long counter_khz(void);

#endif
