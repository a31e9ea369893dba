# A minimal MCP server over stdio that starts in a millisecond, so that thousands can be started and stopped.
info='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1.0.0"}}'
while IFS= read -r line; do
  id=${line#*'"id":'}
  [ "$id" = "$line" ] && continue
  id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) result=$info ;;
    *'"tools/list"'*) result='{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"hello"}]}' ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
