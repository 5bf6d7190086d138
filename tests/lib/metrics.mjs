// metrics.mjs - what /metrics says about the front.

/** How long callbacks held the front's loop: how many took over so many milliseconds, and the longest (s). */
export async function holdsOf(d) {
  const { text } = await d.call('GET', '/metrics');
  const under = Object.fromEntries([...text.matchAll(/^cove_loop_hold_seconds_bucket\{le="(.*?)"\} (\d+)$/gm)].map((m) => [m[1], Number(m[2])]));
  const longest = Number(/^cove_loop_hold_longest_seconds (.*)$/m.exec(text)[1]);
  return { longest, above: (ms) => under['+Inf'] - under[String(ms / 1000)] };
}
