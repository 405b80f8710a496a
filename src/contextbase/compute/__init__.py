"""Long computations beside the event loop, shared out fairly between those who ask for them."""
