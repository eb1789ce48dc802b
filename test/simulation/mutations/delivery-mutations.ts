// delivery-mutations.ts: mistakes in what is sent, in what follows from an answer, and in the conditions.

import type { Mutation } from '../mutations.ts'

export const deliveryMutations: readonly Mutation[] = [
  // ---- answers and verdicts
  {
    name: 'a payload that failed counts as delivered',
    file: 'delivery/policy/payload-results.ts',
    find: "if (earlier?.get(id) !== 'accepted') results.set(id, failure)",
    replace: "results.set(id, 'accepted')",
  },
  {
    name: 'a payload that was accepted once may fail later',
    file: 'delivery/policy/payload-results.ts',
    find: "if (earlier?.get(id) !== 'accepted') results.set(id, failure)",
    replace: 'results.set(id, failure)',
  },
  {
    name: 'earlier answers to a batch are forgotten',
    file: 'delivery/policy/payload-results.ts',
    find: '(earlier ?? [])',
    replace: '([])',
  },
  {
    name: 'a payload that no answer names counts as delivered',
    file: 'delivery/policy/verdict.ts',
    find: 'policy.retryRules, unconfirmed)',
    replace: "policy.retryRules, () => 'accepted')",
  },
  {
    name: 'a payload in neither list is not asked for again',
    file: 'delivery/policy/verdict.ts',
    find: 'if (missing > 0 && facts.earlierResults === null) {',
    replace: 'if (missing > 0 && facts.earlierResults === null && allMissing) {',
  },
  {
    name: 'an answer that ended early counts as complete',
    file: 'delivery/transport/answer-reader.ts',
    find: '  return unreadable(head, body, null, `the answer is not',
    replace:
      "  if (body.cut !== null) return { kind: 'answered', requestId: null, accepted: 'all', failed: [], deviations: [] }\n  return unreadable(head, body, null, `the answer is not",
  },
  {
    name: 'the usual answer is compared with its first payload only',
    file: 'delivery/transport/answer-reader.ts',
    find: 'payloadIds.every((id, index) => accepted[index] === id)',
    replace: 'accepted[0] === payloadIds[0]',
  },
  {
    name: 'a 5xx counts as a refusal of the batch',
    file: 'delivery/transport/answer-reader.ts',
    find: 'if (status === 400 || status === 413) return',
    replace: 'if (status === 400 || status === 413 || status === 500) return',
  },
  {
    name: 'a 429 is an answer without a meaning',
    file: 'delivery/transport/answer-reader.ts',
    find: 'status === 425 || status === 429 ||',
    replace: 'status === 425 ||',
  },
  {
    name: 'a batch without an answer counts as delivered',
    file: 'delivery/policy/verdict.ts',
    find: "case 'unreachable':\n      return held('backoff', 'failure', null)",
    replace: "case 'unreachable':\n      return delivered(null)",
  },
  {
    name: 'a 202 for a batch counts as delivered',
    file: 'delivery/transport/answer-reader.ts',
    find: "  if (question.operation === 'single') return readAcknowledgement(head, body, parsed)\n",
    replace:
      "  if (question.operation === 'single') return readAcknowledgement(head, body, parsed)\n  if (head.status === 202) return { kind: 'answered', requestId: null, accepted: 'all', failed: [], deviations: [] }\n",
  },
  {
    name: 'an outage told inside a 200 by a service that remembers its answers counts as attempts',
    file: 'delivery/policy/verdict.ts',
    find: 'facts.acceptedLately && !facts.mayBeProcessed',
    replace: 'facts.acceptedLately',
  },
  {
    name: 'an outage told inside a 200 is no outage',
    file: 'delivery/policy/verdict.ts',
    find: 'if (inRow < policy.emptyAnswersToUnavailable) {',
    replace: 'if (inRow > 0) {',
  },
  {
    name: 'answers during an outage count as attempts',
    file: 'delivery/policy/verdict.ts',
    find: "return facts.outage ? withUncounted(verdict, 'outage', policy, () => true) : verdict",
    replace: 'return verdict',
  },
  {
    name: 'a payload becomes a dead letter one step too early',
    file: 'delivery/policy/retry-delays.ts',
    find: 'if (step < rule.length &&',
    replace: 'if (step < rule.length - 1 &&',
  },
  {
    name: 'a payload goes back to the first step each time',
    file: 'delivery/policy/retry-delays.ts',
    find: 'const step = byRule.get(schedule) ?? 0',
    replace: 'const step = 0',
  },
  {
    name: 'retries do not wait for the delay of their step',
    file: 'delivery/policy/retry-delays.ts',
    find: '(rule[Math.min(role.step, rule.length - 1)] ?? minuteMs)',
    replace: '0',
  },
  {
    name: 'a 403 for the credentials makes the batch at fault',
    file: 'delivery/policy/refusals.ts',
    find: 'if (number <= at) continue',
    replace: '',
  },
  {
    name: 'a recovered batch counts as never sent',
    file: 'delivery/policy/batch-table.ts',
    find: "mayBeProcessed: from === 'recovered'",
    replace: 'mayBeProcessed: false',
  },
  // ---- the endpoint and the waits
  {
    name: 'the endpoint is never available again',
    file: 'delivery/policy/endpoint.ts',
    find: "    setState('available', 'A submission succeeded.')\n",
    replace: '',
  },
  {
    name: 'no probe is sent',
    file: 'delivery/policy/endpoint.ts',
    find: '    if (probing) return null\n',
    replace: "    if (probing || state === 'unavailable') return null\n",
  },
  {
    name: 'a probe that ended still counts as running',
    file: 'delivery/policy/endpoint.ts',
    find: '    if (pass.probe) probing = false\n',
    replace: '',
  },
  {
    name: 'every failure makes the endpoint unavailable for an hour',
    file: 'delivery/policy/endpoint.ts',
    find: 'fullJitter(random, probesFailed + 1, bounds))',
    replace: 'fullJitter(random, probesFailed + 1, bounds) * 3600)',
  },
  {
    name: 'Retry-After is not obeyed',
    file: 'delivery/provider-pipeline/batch-sender.ts',
    find: 'const retryAfterMs = retryAfterWaitOf(outcome) ?? 0',
    replace: 'const retryAfterMs = 0',
  },
  {
    name: 'a submission has no deadline',
    file: 'delivery/transport/submit.ts',
    find: '      late = true\n      end()\n',
    replace: '      late = true\n',
  },
  {
    name: 'a batch that waits still counts as running',
    file: 'delivery/policy/batch-table.ts',
    find: '    inFlight.running = false\n    if (!this',
    replace: '    if (!this',
  },
  {
    name: 'a batch waits for ever for an acceptance',
    file: 'delivery/provider-pipeline/batch-sender.ts',
    find: "    if (verdict.endpoint === 'success' && refusals.inRow === 0) session.batches.releaseWaiting('acceptance')\n",
    replace: '',
  },
  {
    name: 'the back-offs go on when the endpoint is available',
    file: 'delivery/provider-pipeline/provider-pipeline.ts',
    find: '      session.batches.release()\n',
    replace: '',
  },
  // ---- what is sent
  {
    name: 'recovered batches are not sent',
    file: 'delivery/provider-pipeline/provider-pipeline.ts',
    find: '    recoverBatches(spool, session.batches, provider)\n',
    replace: '',
  },
  {
    name: 'delivery does not go on with the store that is open again',
    file: 'delivery/provider-pipeline/provider-pipeline.ts',
    find: '    void restartSession(session)\n',
    replace: '',
  },
  {
    name: 'a batch of the store before is sent after its loss',
    file: 'delivery/provider-pipeline/provider-pipeline.ts',
    find: "    session.down = 'lost'\n    session.end.abort()\n",
    replace: '',
  },
  {
    name: 'payloads go to another provider',
    file: 'delivery/policy/scheduler.ts',
    find: 'if (lane.provider !== options.name || waitsForRoom(lane)) continue',
    replace: 'if (waitsForRoom(lane)) continue',
  },
  {
    name: 'backfill lanes are never sealed',
    file: 'delivery/policy/scheduler.ts',
    find: "if (kind === 'backfill' && !allowed.backfill && !allowed.probe) continue",
    replace: "if (kind === 'backfill') continue",
  },
  {
    name: 'a lone payload waits for a full batch',
    file: 'delivery/policy/scheduler.ts',
    find: 'const dueAtMs = full ? nowMs : nowMs + lingerMs() - waitedMs',
    replace: 'const dueAtMs = full ? nowMs : nowMs + lingerMs()',
  },
  {
    name: 'the place of a batch is not given back',
    file: 'delivery/provider-pipeline/provider-pipeline.ts',
    find: '        place.leave()\n',
    replace: '',
  },
  {
    name: 'a pass is kept where nothing was sent',
    file: 'delivery/provider-pipeline/provider-pipeline.ts',
    find: "        leave({ kind: 'nothing' })\n        place",
    replace: '        place',
  },
  {
    name: 'a settled batch stays in hand',
    file: 'delivery/provider-pipeline/batch-sender.ts',
    find: '    session.batches.remove(inFlight)\n    ended(session.batches, inFlight)\n  }\n',
    replace: '    ended(session.batches, inFlight)\n  }\n',
  },
  // ---- conditions and what the daemon says of itself
  {
    name: 'ENDPOINT_UNAVAILABLE is never cleared',
    file: 'delivery/policy/endpoint.ts',
    find: '    problem = null\n    probesFailed = 0',
    replace: '    probesFailed = 0',
  },
  {
    name: 'DISK_LOW is never cleared',
    file: 'ops/conditions/conditions.ts',
    find: 'if (!isState || names.has(name)) continue',
    replace: "if (!isState || names.has(name) || condition.code === 'DISK_LOW') continue",
  },
  {
    name: 'dead letters from before the start raise no condition',
    file: 'ops/conditions/dead-letter-conditions.ts',
    find: "yield { code: 'DEAD_LETTERS_WAITING', cause }",
    replace: 'void cause',
  },
  {
    name: 'a held batch that was settled still counts as held',
    file: 'delivery/provider-pipeline/batch-sender.ts',
    find: 'if (reason !== undefined) batches.reportHeld(reason)',
    replace: '',
  },
  {
    name: 'a service that answers again still hangs',
    file: 'delivery/watch/watch.ts',
    find: '    if (this.#late().length === 0) this.#hanging = null\n',
    replace: '',
  },
  {
    name: 'a Retry-After does not end',
    file: 'delivery/watch/watch.ts',
    find: '    if (this.#retry !== null && nowMs >= this.#retry.untilMs) this.#retry = null\n',
    replace: '',
  },
  {
    name: 'a service that accepts again is not told',
    file: 'delivery/watch/acceptance.ts',
    find: '        nothing = null\n',
    replace: '',
  },
  {
    name: 'the endpoint that is unavailable raises no condition',
    file: 'delivery/policy/endpoint.ts',
    find: "    problem = { code: 'ENDPOINT_UNAVAILABLE', provider, failures, why, requestId, act }\n",
    replace: '',
  },
]
