// message-source-conditions.ts: the conditions of message sources: bridges to other brokers.

export const messageSourceConditions = {
  MESSAGE_SOURCE_DISCONNECTED: {
    severity: 'error',
    meaning:
      'A bridge is not connected to its broker. Its messages wait there, as far as the broker keeps them.',
    act:
      'Look at the reason. Check the address, the user and the rules of the broker; `check --connect` tries the ' +
      'bridge. The bridge connects again automatically.',
  },
  MESSAGE_SOURCE_PAUSED: {
    severity: 'warning',
    meaning: 'A bridge has disconnected, because the spool takes nothing in. The broker queues its messages.',
    act:
      'Follow the condition of the spool. Check how many messages the broker queues for one session: a Mosquitto ' +
      'drops beyond max_queued_messages (default 1000) without a word. Set it for the longest pause.',
  },
  MESSAGE_SOURCE_AT_RISK: {
    severity: 'warning',
    meaning: 'The broker of a bridge would lose, strand or delay messages.',
    act: 'Change the limits at the broker, or the options of the bridge.',
  },
  MESSAGE_SOURCE_SILENT: {
    severity: 'warning',
    meaning: 'A bridge is connected and brings no messages for longer than silent_after.',
    act:
      'Check that devices publish, and that the topics of the bridge are theirs. If long pauses are usual, raise ' +
      'silent_after.',
  },
} as const
