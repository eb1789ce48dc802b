// packet-names.ts: the properties of a message of MQTT 5 that paths and expressions can read.

export const packetNames = [
  'content_type',
  'response_topic',
  'correlation_data',
  'payload_format',
  'message_expiry',
] as const
