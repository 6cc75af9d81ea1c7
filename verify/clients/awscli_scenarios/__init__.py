"""What the user of the AWS CLI does, by subject."""
