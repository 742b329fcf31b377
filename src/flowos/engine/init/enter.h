/* Joining a container that another process holds. */
#ifndef FLOWOS_INIT_ENTER_H
#define FLOWOS_INIT_ENTER_H

/* Joins the user and mount namespaces, and the root, of the process that file `enter` of the run
 * folder names. 0, also where there is no such file; or errno, ESTALE if it is not that process
 * any more. */
int enter_container(int folder);

#endif
