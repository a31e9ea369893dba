-- wrk's options for a request with a body, and its figures as one line of JSON.
-- Arguments after `--`: a file with the body of a POST.
function init(args)
  if args[1] then
    wrk.method = 'POST'
    wrk.body = io.open(args[1]):read('*a')
  end
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('FIGURES {"completed":%d,"micros":%d,"p99":%d,"failed":%d}\n',
    summary.requests, summary.duration, latency:percentile(99), failed))
end
