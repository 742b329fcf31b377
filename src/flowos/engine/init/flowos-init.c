/* placeholder: replaced by the launch work */
int main(void) { return 125; }
