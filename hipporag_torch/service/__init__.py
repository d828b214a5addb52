"""One memory as a service: reads while it is written to, confirmed writes, and the MCP server around both."""
