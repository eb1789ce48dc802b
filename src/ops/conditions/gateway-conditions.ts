// gateway-conditions.ts: the conditions of the gateway as a whole: what a person should look at although
// nothing has failed.

export const gatewayConditions = {
  RESTART_NEEDED: {
    severity: 'warning',
    meaning: 'The config changed in sections that need a restart. Until then the old settings are in force.',
    act: 'Restart the gateway. No data is lost.',
  },
  DEAD_LETTERS_WAITING: {
    severity: 'warning',
    meaning: 'Dead letters from before the start of the gateway wait for a decision.',
    act: 'Run `dead-letters list` to see the causes. Correct the cause and requeue, or purge them.',
  },
} as const
