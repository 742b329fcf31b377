/* Does nothing: what it takes from asking for this program to its end is start-up. */
int main(void) { return 0; }
