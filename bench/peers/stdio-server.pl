# The server of `stdio-server.mjs` for `bench scale`, where it runs on the cores of the gateway: a call takes a fraction of the
# CPU time that it takes in Node.js. Reads ids and methods with patterns, which is enough for what the gateway sends.
use strict;
use warnings;
$| = 1;
my $version = '"protocolVersion":"2025-06-18"';
my %results = (
  'initialize' => qq({$version,"capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1.0.0"}}),
  'ping' => '{}',
  'tools/list' => '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}',
  'tools/call' => '{"content":[{"type":"text","text":"hello"}]}',
);
while (my $line = <STDIN>) {
  my ($id) = $line =~ /"id":("[^"]*"|\d+)/ or next;
  my ($method) = $line =~ /"method":"([^"]*)"/ or next;
  my $result = $results{$method};
  my $answer = defined $result ? qq("result":$result) : '"error":{"code":-32601,"message":"method not found"}';
  print qq({"jsonrpc":"2.0","id":$id,$answer}\n);
}
