"""Who acts, and what their token allows."""
