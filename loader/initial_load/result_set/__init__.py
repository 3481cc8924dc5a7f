"""Binary result sets as staged lines."""
