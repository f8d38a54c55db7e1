"""What commands share: options, output, errors in words."""
