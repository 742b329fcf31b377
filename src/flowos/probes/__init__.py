"""One file per probe; programs/ holds what measures. Pure: builds descriptions, reads answers."""
