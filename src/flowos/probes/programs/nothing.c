/* Does nothing: the time to start it and to see its end is start-up. */
int main(void) { return 0; }
