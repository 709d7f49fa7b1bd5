public enum RabbitMQ {
    static let program = "/usr/lib/rabbitmq/bin/rabbitmq-server"
}
