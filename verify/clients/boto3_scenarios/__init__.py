"""What the boto3 client does, by subject."""
