"""Running a flow on a node: stages on places of it, values between them."""
