"""What people do with history: compare, name, go back, take back, remove for good. Above the gate, through the gate."""
