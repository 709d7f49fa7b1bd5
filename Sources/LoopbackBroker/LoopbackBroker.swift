// LoopbackBroker
