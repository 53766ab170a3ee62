"""Goal spaces that learn: LESSON, METRA, and one's own."""
