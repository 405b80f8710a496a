"""Request and response bodies shared by the API and the SDK."""
