// gateway-conditions.ts: the conditions of the gateway as a whole: what a person should look at although
// nothing has failed.

export const gatewayConditions = {
  DEVICES_SILENT: {
    severity: 'warning',
    stops: 'receiving',
    meaning:
      'No device of the whole gateway sends for longer than usual (ops.silence). In quiet hours its severity is ' +
      '`info`.',
    act:
      'Check the network of the depot and that devices can reach the listeners (`status` shows the addresses). ' +
      '`devices` shows who sent last.',
  },
  NOTHING_MAPPED: {
    severity: 'warning',
    meaning: 'Devices send, and none of their messages becomes a payload.',
    act:
      'Use `tap` to see the messages, and `map --explain` with one of them. Check topics and sources of the ' +
      'config, and the device table.',
  },
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
