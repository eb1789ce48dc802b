// settle-mutations.ts: mistakes in what becomes of the payloads of an answer: steps, cuts, dead letters, outages.

import type { Mutation } from '../mutations.ts'

export const settleMutations: readonly Mutation[] = [
  {
    name: 'an outage told inside a 200 never ends',
    file: 'delivery/watch/acceptance.ts',
    find: "if (endpoint === 'outage' || endpoint === 'success') outage = endpoint === 'outage'",
    replace: "if (endpoint === 'outage') outage = true",
  },
  {
    name: 'only batches of retry lanes are signs of an outage',
    file: 'delivery/policy/verdict.ts',
    find: 'facts.emptyAnswers + (retried ? 0 : 1)',
    replace: 'facts.emptyAnswers + (retried ? 1 : 0)',
  },
  {
    name: 'on_refused_repeat is read the wrong way round',
    file: 'delivery/policy/verdict.ts',
    find: "if (facts.mayBeProcessed && policy.onRefusedRepeat === 'hold')",
    replace: "if (facts.mayBeProcessed && policy.onRefusedRepeat !== 'hold')",
  },
  {
    name: 'what an earlier answer said is forgotten at a 409',
    file: 'delivery/policy/verdict.ts',
    find: 'if (earlierResults === null || earlierResults.size === 0) return verdict',
    replace: 'if (earlierResults !== undefined) return verdict',
  },
  {
    name: 'a refused batch of two payloads is sent as a single one',
    file: 'delivery/policy/verdict.ts',
    find: "if (payloads === 1) return { ...nothing, operation: 'single'",
    replace: "if (payloads <= 2) return { ...nothing, operation: 'single'",
  },
  {
    name: 'a payload in both lists counts as accepted',
    file: 'delivery/policy/payload-results.ts',
    find: "if (earlier?.get(id) !== 'accepted') results.set(id, failure)",
    replace: "if (results.get(id) !== 'accepted') results.set(id, failure)",
  },
  {
    name: 'the delay of a step is that of the step before',
    file: 'delivery/policy/retry-delays.ts',
    find: 'rule[Math.min(role.step, rule.length - 1)]',
    replace: 'rule[Math.max(0, Math.min(role.step, rule.length - 1) - 1)]',
  },
  {
    name: 'all types of errors have the default delays',
    file: 'delivery/policy/retry-delays.ts',
    find: "return rules.has(errorType) ? errorType : 'default'",
    replace: "return rules.has(errorType) ? 'default' : 'default'",
  },
  {
    name: 'the first part of a batch that was cut is not sent',
    file: 'delivery/provider-pipeline/batch-sender.ts',
    find: 'for (const batch of batches)\n',
    replace: 'for (const batch of batches.slice(1))\n',
  },
  {
    name: 'a payload alone waits for ever after a restart',
    file: 'delivery/policy/refusals.ts',
    find: "if (!isNews && batch.batch.operation === 'batch') return",
    replace: 'if (!isNews) return',
  },
  {
    name: 'a service that fails stays available',
    file: 'delivery/policy/endpoint.ts',
    find: '(failuresInRow >= backoff.failuresToUnavailable && severalFail) ||',
    replace: '(failuresInRow >= 1000 && severalFail) ||',
  },
  {
    name: 'an endpoint that is available again is not told',
    file: 'delivery/policy/endpoint.ts',
    find: "    emit({ kind: 'endpoint_changed', provider, state, why })\n  }\n\n  function opensAt",
    replace:
      "    if (next !== 'available') emit({ kind: 'endpoint_changed', provider, state, why })\n  }\n\n  function opensAt",
  },
  {
    name: 'a dead letter does not say which answer made it',
    file: 'spool/batches/settle.ts',
    find: '    requestId,\n    failure,\n',
    replace: '    requestId: requestId === null ? null : `${requestId}-`,\n    failure,\n',
  },
  {
    name: 'an answer that does not count uses up a step',
    file: 'spool/batches/settle.ts',
    find: 'Object.fromEntries(uncounted ? before : before.set(schedule, step + 1))',
    replace: 'Object.fromEntries(before.set(schedule, step + 1))',
  },
  {
    name: 'a delivered payload goes to a retry lane as well',
    file: 'spool/batches/settle.ts',
    find: "      case 'delivered':\n      case 'returned':\n        return\n",
    replace:
      "      case 'delivered':\n        addBytes(retryFor(plan, batch, { schedule: 'default', step: 0 } as never).builder, json, attempts)\n        return\n      case 'returned':\n        return\n",
  },
]
