"""Looking for records: a line of search, records to text, a scan over the wire, a tail, exports."""
