import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A namenode and a datanode on loopback, until standard input ends: `MiniHdfs FOLDER PORT HTTP_PORT`. */
public class MiniHdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("hdfs.minidfs.basedir", arguments[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings)
            .nameNodePort(Integer.parseInt(arguments[1]))
            .nameNodeHttpPort(Integer.parseInt(arguments[2]))
            .numDataNodes(1)
            .build();
        cluster.waitActive();
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
        cluster.shutdown();
    }
}
