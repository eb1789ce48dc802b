// client-conditions.ts: the conditions of clients of the broker: connections, access and what they publish.

const hourMs = 3_600_000

export const clientConditions = {
  CONTROL_PACKETS_LIMITED: {
    severity: 'warning',
    meaning: 'Clients sent more control packets than ingest.broker.limits.max_control_packets_per_s.',
    act:
      'Find the client by the address in the log (client_dropped). If it is one of yours, correct it, or raise ' +
      'the limit. If not, block its address.',
    quietMs: hourMs,
  },
  PARTIAL_PACKETS_FULL: {
    severity: 'warning',
    meaning:
      'Packets whose end did not arrive used all of ingest.broker.limits.max_partial_bytes. Connections of the ' +
      'address that used the most were closed. Their devices connect and send again.',
    act:
      'Look at the address. If your devices send many large packets at once over slow links, raise the limit. If ' +
      'not, block the address.',
    quietMs: hourMs,
  },
  PUBLISH_REFUSED: {
    severity: 'warning',
    meaning: 'Clients publish to topics that they may not use. These messages are not taken.',
    act:
      'Run `devices`: it lists the clients. If one is a device of yours, correct its topic, its user, or the rules ' +
      '(ingest.broker.rules, identity of the source). If not, block its address or its user.',
    quietMs: hourMs,
  },
  CLIENT_ID_SHARED: {
    severity: 'warning',
    meaning: 'Two devices share one client id: each connection of one closes that of the other.',
    act:
      'Give each device a client id of its own. If only one device has this id, its connection breaks again and ' +
      'again: check its network.',
    quietMs: 600_000,
  },
  CONNECTIONS_LIMITED: {
    severity: 'warning',
    meaning:
      'Connections are closed because a limit in ingest.broker.limits, or that of open files, is reached.',
    act:
      'Find out what connects from the addresses in the condition, and block unknown ones in the firewall. If they ' +
      'are your devices, raise the limit, and LimitNOFILE of the unit where the start warned of it. If it is your ' +
      'balancer, set proxy_protocol of the listener.',
    quietMs: 300_000,
  },
  WEBSOCKET_REFUSED: {
    severity: 'warning',
    meaning: 'Connections to a listener for WebSocket are closed, because of what they ask for.',
    act:
      'The reason says what to correct at the client: its port, its path (that in the URL of the listener), or its ' +
      'subprotocol (`mqtt`). For a web page of yours, add its Origin to websocket.origins of the listener; for devices ' +
      'that send the name of the listener as their Origin, add this name to websocket.hosts. If unknown programs try the port, there is nothing to do.',
    quietMs: 300_000,
  },
  CLIENTS_PAUSED: {
    severity: 'warning',
    meaning:
      'Clients send more than their rate, or messages that take long to map. They are slowed down, and nothing is ' +
      'dropped.',
    act:
      'Find out why the clients in the condition send that much. If it is intended, raise the limit in ' +
      'ingest.broker.limits. Messages that take long have many values, or unpack to many times their size: have the ' +
      'device send smaller ones.',
    quietMs: 300_000,
  },
  SESSIONS_LIMITED: {
    severity: 'warning',
    meaning:
      'Stored sessions are removed because a limit is reached. Their clients start new ones, and may send ' +
      'QoS 2 messages a second time.',
    act:
      'Look for clients that connect with a new client id each time, or never release their QoS 2 messages. If ' +
      'they are in order, raise the limit in ingest.broker.limits.',
    quietMs: 300_000,
  },
  PROXY_HEADER_WRONG: {
    severity: 'warning',
    meaning: 'Connections are closed because of the PROXY protocol.',
    act:
      'Have the balancer send version 2 or 1 of the protocol, and list its addresses in proxy_protocol.trusted of ' +
      'the listener. Devices that connect directly need a listener of their own.',
    quietMs: 300_000,
  },
  AUTH_FAILURES: {
    severity: 'warning',
    meaning: 'Clients are refused because of a wrong password, token or user.',
    act:
      'If the address is a device of yours, correct its user name and password. If not, block the address in ' +
      'the firewall. A user name that is not configured is not shown, because it may be a password.',
    quietMs: 600_000,
  },
  CLIENTS_REFUSED: {
    severity: 'warning',
    meaning:
      'Clients are refused for one reason, again and again. It is an `error` where they are half of the known clients or ' +
      'more, or where several are refused and none was ever admitted. Other conditions tell of wrong passwords, limits, ' +
      'the PROXY protocol and WebSocket.',
    act: 'The reason says what to correct. If the client in the condition is none of yours, block its address.',
    quietMs: 600_000,
  },
} as const
